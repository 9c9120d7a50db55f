#include <cstdio>

int main() {
  std::puts("kizzasi");
  return 0;
}
