// Builds the page from the content in the script element of that name. Every text enters as text, never as markup.
(() => {
  const root = document.documentElement;
  root.dataset.errors = "0";
  window.addEventListener("error", (event) => {
    root.dataset.errors = String(Number(root.dataset.errors) + 1);
    root.dataset.error = event.message;
  });

  const element = (tag, className, text) => {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined && text !== null) e.textContent = text;
    return e;
  };
  const shown = (value) => (typeof value === "number" ? numberText(value) : value === null || value === undefined ? "–" : String(value));

  const blocks = {
    plot(card, block) { new Plot(card, block); },

    table(card, block) {
      const scroll = element("div", "scroll"), table = element("table"), head = element("tr"), body = element("tbody");
      const rows = [...block.rows];
      const best = block.columns.map((column, c) => {
        const numbers = block.rows.map((row) => row[c]).filter((v) => typeof v === "number");
        if (!column.better || numbers.length < 2) return null;
        if (column.better === "low") return Math.min(...numbers);
        if (column.better === "high") return Math.max(...numbers);
        return numbers.reduce((a, b) => (Math.abs(a - column.better) <= Math.abs(b - column.better) ? a : b));  // nearest to a wanted value
      });
      const isText = block.columns.map((_, c) => block.rows.every((row) => typeof row[c] !== "number"));
      const fill = () => body.replaceChildren(...rows.map((row) => {
        const line = element("tr", row[0] === block.own ? "own" : "");
        row.forEach((value, c) => {
          const good = best[c] !== null && value === best[c];
          line.append(element("td", [good ? "best" : "", isText[c] ? "text" : ""].join(" ").trim(), shown(value)));
        });
        return line;
      }));
      block.columns.forEach((column, c) => {
        const cell = element("th", isText[c] ? "text" : "", column.name);
        if (column.unit) cell.append(" ", element("small", "", column.unit));
        cell.title = column.help || "Click to sort";
        cell.onclick = () => {
          const down = cell.getAttribute("aria-sort") === "ascending";
          for (const other of head.children) other.removeAttribute("aria-sort");
          cell.setAttribute("aria-sort", down ? "descending" : "ascending");
          const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : shown(a).localeCompare(shown(b)));
          rows.sort((p, q) => (down ? -1 : 1) * order(p[c], q[c]));
          fill();
        };
        head.append(cell);
      });
      const top = element("thead");
      top.append(head);
      table.append(top, body);
      fill();
      scroll.append(table);
      card.append(scroll);
    },

    findings(card, block) {
      const signs = { ok: "✓", note: "i", warning: "!", error: "✕" };
      const list = element("ul", "findings");
      for (const item of block.items) {
        const line = element("li", item.severity || "note"), words = element("div", "", item.text);
        line.append(element("span", "mark", signs[item.severity] || "i"), words);
        if (item.detail) words.append(element("small", "", item.detail));
        list.append(line);
      }
      card.append(list);
    },

    card(card, block) {
      const list = element("dl");
      for (const [name, value] of block.entries) list.append(element("dt", "", name), element("dd", "", shown(value)));
      card.append(list);
    },

    text(card, block) {
      for (const paragraph of String(block.text).split("\n\n")) card.append(element("p", "note", paragraph));
    },

    code(card, block) { card.append(element("pre", "", block.text)); },
  };

  function part(content) {
    const section = element("section");
    section.append(element("h1", "", content.title));
    if (content.lead) section.append(element("p", "lead", content.lead));
    if (content.tiles && content.tiles.length) {
      const tiles = element("div", "tiles");
      for (const tile of content.tiles) {
        const box = element("div", `tile ${tile.tone || ""}`), value = element("div", "value", shown(tile.value));
        if (tile.unit) value.append(element("small", "", tile.unit));
        box.append(element("div", "name", tile.name), value);
        if (tile.note) box.append(element("div", "note", tile.note));
        tiles.append(box);
      }
      section.append(tiles);
    }
    const grid = element("div", "grid");
    section.append(grid);
    for (const block of content.blocks || []) {
      const card = element("article", `card ${block.width || ""}`), head = element("div", "head");
      head.append(element("h2", "", block.title));
      if (block.kind === "plot") head.append(element("span", "hint", "drag to zoom · double click: all"));
      card.append(head);
      if (block.note) card.append(element("p", "note", block.note));
      grid.append(card);
      if (!blocks[block.kind]) throw new Error(`unknown block kind '${block.kind}'`);
      blocks[block.kind](card, block);
    }
    return section;
  }

  const content = JSON.parse(document.getElementById("content").textContent);
  const page = document.getElementById("page"), tabs = document.getElementById("tabs");
  const parts = content.parts.map(part);
  page.append(...parts);
  const show = (index) => {
    parts.forEach((section, i) => { section.hidden = i !== index; });
    [...tabs.children].forEach((tab, i) => tab.setAttribute("aria-selected", String(i === index)));
    for (const plot of Plot.all) plot.draw();
    window.scrollTo(0, 0);
  };
  if (parts.length > 1) {
    tabs.setAttribute("role", "tablist");
    content.parts.forEach((each, index) => {
      const tab = element("button", "", each.tab || each.title);
      tab.type = "button";
      tab.setAttribute("role", "tab");
      tab.onclick = () => { history.replaceState(null, "", `#${index + 1}`); show(index); };
      tabs.append(tab);
    });
  }
  document.getElementById("foot").textContent = content.foot || "";

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paint = (theme) => { root.dataset.theme = theme; for (const plot of Plot.all) plot.draw(); };
  dark.addEventListener("change", () => paint(dark.matches ? "dark" : "light"));
  document.getElementById("theme").onclick = () => paint(root.dataset.theme === "dark" ? "light" : "dark");
  root.dataset.theme = dark.matches ? "dark" : "light";
  const asked = Number(location.hash.slice(1)) - 1;
  show(asked >= 0 && asked < parts.length ? asked : 0);
  root.dataset.plots = String(Plot.all.length);
  root.dataset.ready = "yes";
})();
