"use strict";
// One plot: lines, bands, limits, spans and marks over a common x axis, on two canvases (the picture, and what follows the pointer).
// Drag to zoom, double click or the button to see all again, hover for values, click the legend to hide; with the keyboard: left and right
// move the cursor, + and - zoom, Escape shows all. Plots with the same `sync` share zoom and cursor.
// The spec is described in web/report/README.md.

const kMargin = { left: 62, right: 16, top: 14, bottom: 34 };
const kPalette = ["--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8", "--c1"];
const kRoles = { truth: "--truth", history: "--history", forecast: "--forecast", limit: "--limit", residual: "--c4", score: "--c2" };

const cssColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function niceStep(span, count) {
  const rough = span / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough)), part = rough / power;
  return power * (part < 1.5 ? 1 : part < 3 ? 2 : part < 7 ? 5 : 10);
}

function numberText(value, step) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(2);
  const digits = step ? Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)) : Math.max(0, Math.min(6, 4 - Math.floor(Math.log10(size || 1)) - 1));
  const [whole, rest] = value.toFixed(Math.min(digits, 12)).split(".");
  return whole.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f") + (rest ? "." + rest : "");
}

// Ticks of a time axis, in ms. Times are shown as they stand in the recording: no zone of the reader's machine enters.
const kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
const kTimeSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, kSecond, 2 * kSecond, 5 * kSecond, 10 * kSecond, 15 * kSecond, 30 * kSecond, kMinute,
  2 * kMinute, 5 * kMinute, 10 * kMinute, 15 * kMinute, 30 * kMinute, kHour, 2 * kHour, 3 * kHour, 6 * kHour, 12 * kHour, kDay, 2 * kDay,
  7 * kDay, 14 * kDay, 30 * kDay, 91 * kDay, 182 * kDay, 365 * kDay, 730 * kDay, 1826 * kDay, 3652 * kDay];
const kMonths = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (n) => String(n).padStart(2, "0");

function timeText(ms, step) {
  const t = new Date(ms);
  const day = `${t.getUTCDate()} ${kMonths[t.getUTCMonth()]}`, clock = `${two(t.getUTCHours())}:${two(t.getUTCMinutes())}`;
  if (step >= 300 * kDay) return String(t.getUTCFullYear());
  if (step >= 28 * kDay) return `${kMonths[t.getUTCMonth()]} ${t.getUTCFullYear()}`;
  if (step >= kDay) return day;
  if (step >= kMinute) return t.getUTCHours() === 0 && t.getUTCMinutes() === 0 ? day : clock;
  const seconds = `${clock}:${two(t.getUTCSeconds())}`;
  return step >= kSecond ? seconds : `${two(t.getUTCMinutes())}:${two(t.getUTCSeconds())}.${String(t.getUTCMilliseconds()).padStart(3, "0")}`;
}

function fullTimeText(ms, step) {
  const t = new Date(ms), text = t.toISOString().replace("T", " ").replace("Z", "");
  return step < kSecond ? text : step < kMinute ? text.slice(0, 19) : step < kDay ? text.slice(0, 16) : text.slice(0, 10);
}

class Plot {
  static all = [];

  constructor(host, spec) {
    this.spec = spec;
    this.x = spec.x || {};
    this.isTime = this.x.kind === "time";
    this.items = [];
    let next = 0;
    for (const band of spec.bands || []) this.items.push({ kind: "band", data: band, color: kRoles[band.role] || "--forecast", on: true });
    for (const line of spec.lines || []) {
      this.items.push({ kind: "line", data: line, color: kRoles[line.role] || kPalette[next++ % kPalette.length], on: !line.hidden });
    }
    for (const limit of spec.limits || []) this.items.push({ kind: "limit", data: limit, color: "--limit", on: true });
    this.full = this.extent();
    this.view = [...this.full];
    this.build(host);
    Plot.all.push(this);
  }

  // --- data -----------------------------------------------------------------------------------------------------------------------
  xAt(index) { return this.x.values ? this.x.values[index] : (this.x.start || 0) + index * (this.x.step || 1); }

  // The first index whose x is at least `value`.
  indexAt(value, count) {
    if (!this.x.values) return Math.max(0, Math.min(count, Math.ceil((value - (this.x.start || 0)) / (this.x.step || 1) - 1e-9)));
    let low = 0, high = count;
    while (low < high) { const mid = (low + high) >> 1; if (this.x.values[mid] < value) low = mid + 1; else high = mid; }
    return low;
  }

  static length(data) { return (data.from || 0) + (data.values || data.low || []).length; }
  static at(values, data, index) { const i = index - (data.from || 0); const v = i >= 0 && i < values.length ? values[i] : null; return v === undefined ? null : v; }

  count() { return Math.max(1, ...this.items.map((item) => Plot.length(item.data))); }

  extent() {
    const starts = this.items.filter((i) => i.kind !== "limit" || i.data.values).map((i) => i.data.from || 0);
    const low = this.xAt(Math.min(...starts, this.count() - 1)), high = this.xAt(this.count() - 1);
    if (high <= low) return [low - 0.5, low + 0.5];
    const wide = this.items.some((i) => i.data.style === "points" || i.data.style === "bars") ? (high - low) * 0.02 : 0;  // room for the marks
    return [low - wide, high + wide];
  }

  yRange() {
    let low = Infinity, high = -Infinity;
    const take = (v) => { if (v !== null && Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; } };
    for (const item of this.items) {
      if (!item.on || item.kind === "limit") continue;
      const end = Plot.length(item.data), first = this.indexAt(this.view[0], end), last = Math.min(end - 1, this.indexAt(this.view[1], end));
      for (let i = first; i <= last; i++) for (const key of ["values", "low", "high"]) if (item.data[key]) take(Plot.at(item.data[key], item.data, i));
    }
    if (low > high) [low, high] = [0, 1];
    for (const item of this.items) {  // a limit joins the picture where it is near
      if (item.kind !== "limit" || !item.on || typeof item.data.value !== "number") continue;
      const reach = 0.6 * (high - low || 1);
      if (item.data.value >= low - reach && item.data.value <= high + reach) take(item.data.value);
    }
    if (this.spec.y && typeof this.spec.y.low === "number") low = Math.min(low, this.spec.y.low);
    if (this.spec.y && typeof this.spec.y.high === "number") high = Math.max(high, this.spec.y.high);
    if (high === low) { const half = Math.abs(low) * 0.1 || 1; low -= half; high += half; }
    const air = 0.06 * (high - low);
    const fixed = (end, value) => this.spec.y && this.spec.y[end] === value;
    return [fixed("low", low) ? low : low - air, fixed("high", high) ? high : high + air];
  }

  // --- page -----------------------------------------------------------------------------------------------------------------------
  build(host) {
    const make = (tag, className, parent) => { const e = document.createElement(tag); e.className = className; parent.appendChild(e); return e; };
    const legend = make("div", "legend", host);
    for (const item of this.items) {
      const button = make("button", "", legend);
      button.type = "button";
      button.setAttribute("aria-pressed", String(item.on));
      item.swatch = make("i", item.kind === "band" ? "band" : item.kind === "limit" ? "dashed" : item.data.style || "", button);
      button.append(item.data.name || "");
      button.onclick = () => { item.on = !item.on; button.setAttribute("aria-pressed", String(item.on)); this.draw(); };
    }
    this.box = make("div", "plot", host);
    this.canvas = make("canvas", "", this.box);
    this.over = make("canvas", "over", this.box);
    this.over.tabIndex = 0;
    this.over.setAttribute("role", "img");
    this.over.setAttribute("aria-label", `${this.spec.title || "Plot"}. Drag to zoom; arrow keys move the cursor; Escape shows all.`);
    this.reset = make("button", "reset", this.box);
    this.reset.type = "button";
    this.reset.textContent = "Show all";
    this.reset.hidden = true;
    this.reset.onclick = () => this.zoom(null);
    this.tip = make("div", "tip", this.box);
    this.tip.hidden = true;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  listen() {
    const place = (event) => event.clientX - this.over.getBoundingClientRect().left;
    this.over.onpointerdown = (event) => { this.dragFrom = this.dragTo = place(event); this.over.setPointerCapture?.(event.pointerId); };
    this.over.onpointermove = (event) => {
      if (this.dragFrom !== undefined) this.dragTo = place(event);
      this.point(this.toX(place(event)));
    };
    this.over.onpointerup = () => {
      const [a, b] = [this.dragFrom, this.dragTo].sort((p, q) => p - q);
      this.dragFrom = this.dragTo = undefined;
      if (b - a > 6) this.zoom([this.toX(a), this.toX(b)]);
      else this.drawOver();
    };
    this.over.onpointercancel = () => { this.dragFrom = this.dragTo = undefined; this.drawOver(); };
    this.over.onpointerleave = () => { if (this.dragFrom === undefined) this.point(null); };
    this.over.ondblclick = () => this.zoom(null);
    this.over.onkeydown = (event) => {
      const middle = this.cursor ?? (this.view[0] + this.view[1]) / 2, span = this.view[1] - this.view[0];
      const step = Math.max(this.x.step || 0, span / 200);
      if (event.key === "ArrowLeft") this.point(middle - step);
      else if (event.key === "ArrowRight") this.point(middle + step);
      else if (event.key === "+" || event.key === "=") this.zoom([middle - span / 4, middle + span / 4]);
      else if (event.key === "-") this.zoom([middle - span, middle + span]);
      else if (event.key === "Escape") this.zoom(null);
      else return;
      event.preventDefault();
    };
  }

  peers() { return this.spec.sync ? Plot.all.filter((plot) => plot.spec.sync === this.spec.sync) : [this]; }

  zoom(range) {
    for (const plot of this.peers()) {
      const least = 2 * (this.x.step || (this.full[1] - this.full[0]) / 1e4);
      let view = range ? [Math.max(plot.full[0], range[0]), Math.min(plot.full[1], range[1])] : [...plot.full];
      if (view[1] - view[0] < least) view = [...plot.view];
      plot.view = view;
      plot.reset.hidden = view[0] === plot.full[0] && view[1] === plot.full[1];
      plot.draw();
    }
  }

  point(x) {
    for (const plot of this.peers()) {
      plot.cursor = x === null ? null : Math.max(plot.view[0], Math.min(plot.view[1], x));
      plot.drawOver(plot === this);
    }
  }

  // --- picture --------------------------------------------------------------------------------------------------------------------
  toX(pixel) { return this.view[0] + (pixel - kMargin.left) / (this.width - kMargin.left - kMargin.right) * (this.view[1] - this.view[0]); }
  px(x) { return kMargin.left + (x - this.view[0]) / (this.view[1] - this.view[0]) * (this.width - kMargin.left - kMargin.right); }
  py(y) { return this.height - kMargin.bottom - (y - this.y[0]) / (this.y[1] - this.y[0]) * (this.height - kMargin.top - kMargin.bottom); }

  prepare(canvas) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    g.font = "12px " + (cssColor("--sans") || "sans-serif");
    g.lineJoin = "round";
    return g;
  }

  draw() {
    this.width = this.box.clientWidth;
    this.height = this.box.clientHeight;
    if (this.width < 120 || this.height < 60) return;  // in a hidden part
    this.y = this.yRange();
    const g = this.prepare(this.canvas);
    for (const item of this.items) {
      const color = cssColor(item.color);
      item.swatch.style[item.kind === "band" || item.data.style === "points" ? "background" : "borderTopColor"] = color;
      if (item.kind === "band") item.swatch.style.opacity = this.opacity(item);
    }
    this.drawAxes(g);
    g.save();
    g.beginPath();
    g.rect(kMargin.left, kMargin.top - 4, this.width - kMargin.left - kMargin.right, this.height - kMargin.top - kMargin.bottom + 8);
    g.clip();
    for (const span of this.spec.spans || []) {
      g.fillStyle = cssColor("--span");
      const left = this.px(span.from), right = this.px(span.to);
      g.fillRect(left, kMargin.top, Math.max(2, right - left), this.height - kMargin.top - kMargin.bottom);
    }
    if (this.spec.diagonal) this.stroke(g, [[this.px(this.view[0]), this.py(this.view[0])], [this.px(this.view[1]), this.py(this.view[1])]], "--faint", 1.2, [4, 4]);
    for (const item of this.items) if (item.on) this[item.kind === "band" ? "drawBand" : item.kind === "limit" ? "drawLimit" : "drawLine"](g, item);
    for (const mark of this.spec.marks || []) {
      this.stroke(g, [[this.px(mark.x), kMargin.top], [this.px(mark.x), this.height - kMargin.bottom]], "--faint", 1, [3, 3]);
      g.fillStyle = cssColor("--soft");
      g.textAlign = "left";
      g.fillText(mark.label || "", this.px(mark.x) + 5, kMargin.top + 9);
    }
    g.restore();
    this.drawOver();
  }

  drawAxes(g) {
    const left = kMargin.left, right = this.width - kMargin.right, bottom = this.height - kMargin.bottom;
    g.lineWidth = 1;
    g.textBaseline = "middle";
    g.textAlign = "right";
    const yStep = niceStep(this.y[1] - this.y[0], (bottom - kMargin.top) / 48);
    for (let tick = Math.ceil(this.y[0] / yStep) * yStep; tick <= this.y[1]; tick += yStep) {
      const y = Math.round(this.py(tick)) + 0.5;
      g.strokeStyle = cssColor(Math.abs(tick) < yStep / 2 ? "--rule" : "--grid");
      g.beginPath(); g.moveTo(left, y); g.lineTo(right, y); g.stroke();
      g.fillStyle = cssColor("--faint");
      g.fillText(numberText(Math.abs(tick) < yStep * 1e-6 ? 0 : tick, yStep), left - 8, y);
    }
    g.textAlign = "center";
    const span = this.view[1] - this.view[0], wanted = (right - left) / 92;
    const step = this.isTime ? kTimeSteps.find((s) => s >= span / wanted) || niceStep(span, wanted) : niceStep(span, wanted);
    for (let tick = Math.ceil(this.view[0] / step - 1e-9) * step; tick <= this.view[1] + step * 1e-9; tick += step) {
      const x = Math.round(this.px(tick)) + 0.5;
      g.strokeStyle = cssColor("--grid");
      g.beginPath(); g.moveTo(x, kMargin.top); g.lineTo(x, bottom); g.stroke();
      const text = this.isTime ? timeText(tick, step) : numberText(tick, step), half = g.measureText(text).width / 2;
      g.fillStyle = cssColor("--faint");
      if (x + half <= this.width) g.fillText(text, x, bottom + 13);
    }
    g.fillStyle = cssColor("--soft");
    const yName = [this.spec.y && this.spec.y.label, this.spec.y && this.spec.y.unit && `[${this.spec.y.unit}]`].filter(Boolean).join(" ");
    g.save(); g.translate(11, (kMargin.top + bottom) / 2); g.rotate(-Math.PI / 2); g.fillText(yName, 0, 0); g.restore();
    if (this.x.label) g.fillText(this.x.label, (left + right) / 2, this.height - 7);
  }

  stroke(g, points, color, width, dash) {
    g.strokeStyle = cssColor(color);
    g.lineWidth = width;
    g.setLineDash(dash || []);
    g.beginPath();
    points.forEach(([x, y], i) => (i ? g.lineTo(x, y) : g.moveTo(x, y)));
    g.stroke();
    g.setLineDash([]);
  }

  // Stretches without a gap, as [x, low, high] in pixels; where many points share a pixel, their lowest and highest.
  *stretches(data, low, high) {
    const end = Plot.length(data), first = Math.max(data.from || 0, this.indexAt(this.view[0], end) - 1), last = Math.min(end - 1, this.indexAt(this.view[1], end));
    const dense = last - first > 2 * this.width;
    let run = [];
    for (let i = first; i <= last; i++) {
      const a = Plot.at(low, data, i), b = Plot.at(high, data, i);
      if (a === null || b === null) { if (run.length) yield run; run = []; continue; }
      const x = this.px(this.xAt(i)), tail = run[run.length - 1];
      if (dense && tail && Math.floor(tail[0]) === Math.floor(x)) { tail[1] = Math.min(tail[1], a); tail[2] = Math.max(tail[2], b); }
      else run.push([x, a, b]);
    }
    if (run.length) yield run;
  }

  opacity(item) { const bands = this.items.filter((i) => i.kind === "band"); return bands.length > 1 ? 0.17 + 0.2 * bands.indexOf(item) / (bands.length - 1) : 0.22; }

  drawBand(g, item) {
    g.fillStyle = cssColor(item.color);
    g.globalAlpha = this.opacity(item);
    for (const run of this.stretches(item.data, item.data.low, item.data.high)) {
      g.beginPath();
      run.forEach(([x, , high], i) => (i ? g.lineTo(x, this.py(high)) : g.moveTo(x, this.py(high))));
      for (let i = run.length - 1; i >= 0; i--) g.lineTo(run[i][0], this.py(run[i][1]));
      g.closePath();
      g.fill();
    }
    g.globalAlpha = 1;
  }

  drawLine(g, item) {
    const style = item.data.style || "line", width = item.data.role === "forecast" ? 2.2 : 1.6;
    for (const run of this.stretches(item.data, item.data.values, item.data.values)) {
      if (style === "bars") {
        g.fillStyle = cssColor(item.color);
        const room = run.length > 1 ? Math.max(1, (run[run.length - 1][0] - run[0][0]) / (run.length - 1) * 0.82) : 24;
        for (const [x, , high] of run) { const base = this.py(Math.max(0, this.y[0])); g.fillRect(x - room / 2, this.py(high), room, base - this.py(high)); }
      } else if (style === "points" || run.length === 1) {
        g.fillStyle = cssColor(item.color);
        for (const [x, , high] of run) { g.beginPath(); g.arc(x, this.py(high), style === "points" ? 3.2 : 2, 0, 7); g.fill(); }
      }
      if (style === "points" || style === "bars") continue;
      const path = [];
      for (const [x, low, high] of run) {
        if (style === "steps" && path.length) path.push([x, path[path.length - 1][1]]);
        path.push([x, this.py(low)]);
        if (high !== low) path.push([x, this.py(high)]);
      }
      this.stroke(g, path, item.color, width, style === "dashed" ? [6, 4] : []);
    }
  }

  drawLimit(g, item) {
    if (item.data.values) {
      for (const run of this.stretches(item.data, item.data.values, item.data.values)) this.stroke(g, run.map(([x, y]) => [x, this.py(y)]), item.color, 1.3, [6, 4]);
      return;
    }
    const y = this.py(item.data.value);
    this.stroke(g, [[kMargin.left, y], [this.width - kMargin.right, y]], item.color, 1.3, [6, 4]);
  }

  drawOver(speak) {
    if (!this.width) return;
    const g = this.prepare(this.over);
    const bottom = this.height - kMargin.bottom;
    if (this.dragFrom !== undefined && Math.abs(this.dragTo - this.dragFrom) > 2) {
      g.fillStyle = cssColor("--accent-soft");
      g.fillRect(Math.min(this.dragFrom, this.dragTo), kMargin.top, Math.abs(this.dragTo - this.dragFrom), bottom - kMargin.top);
    }
    this.tip.hidden = true;
    if (this.cursor === null || this.cursor === undefined) return;
    const count = this.count();
    let index = Math.min(count - 1, this.indexAt(this.cursor, count));
    if (index > 0 && this.cursor - this.xAt(index - 1) < this.xAt(index) - this.cursor) index--;
    const x = this.px(this.xAt(index));
    this.stroke(g, [[x, kMargin.top], [x, bottom]], "--faint", 1);
    const rows = [];
    for (const item of this.items) {
      if (!item.on) continue;
      if (item.kind === "band") {
        const low = Plot.at(item.data.low, item.data, index), high = Plot.at(item.data.high, item.data, index);
        if (low !== null && high !== null) rows.push([item, `${numberText(low)} … ${numberText(high)}`]);
      } else if (item.data.values) {
        const value = Plot.at(item.data.values, item.data, index);
        if (value === null) continue;
        rows.push([item, numberText(value)]);
        g.fillStyle = cssColor(item.color);
        g.beginPath(); g.arc(x, this.py(value), 3.5, 0, 7); g.fill();
      }
    }
    if (!speak || rows.length === 0) return;
    const title = document.createElement("b");
    title.textContent = this.isTime ? fullTimeText(this.xAt(index), this.x.step || kSecond) : `${this.x.label || "x"} ${numberText(this.xAt(index))}`;
    this.tip.replaceChildren(title, ...rows.map(([item, text]) => {
      const row = document.createElement("div"), swatch = document.createElement("i"), name = document.createElement("span"), value = document.createElement("span");
      swatch.style.background = cssColor(item.color);
      if (item.kind === "band") swatch.style.opacity = 0.5;
      name.textContent = item.data.name || "";
      value.textContent = text;
      row.append(swatch, name, value);
      return row;
    }));
    this.tip.hidden = false;
    const wide = this.tip.offsetWidth;
    this.tip.style.left = `${x + 14 + wide > this.width ? Math.max(0, x - wide - 14) : x + 14}px`;
    this.tip.style.top = `${kMargin.top + 6}px`;
  }
}
