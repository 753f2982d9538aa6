// A long table of which only what is seen exists. Rows have one height; screen readers get the count.

import { h } from "./dom.js";

const EXTRA = 8;

export class LongTable {
  /** `columns`: [[key, title, class]]; `row(item)` gives the cells; `key(item)` names an item. */
  constructor({ label, columns, row, key, seen = () => {}, height = () => 40 }) {
    Object.assign(this, { row, key, seen, height });
    this.items = [];
    this.rows = new Map();
    this.space = h("div", { class: "space", role: "presentation" });
    this.head = h("div", { class: "tr head", role: "row", "aria-rowindex": 1 },
      columns.map(([, title, kind]) => h("div", { class: `td ${kind ?? ""}`, role: "columnheader", text: title })));
    this.body = h("div", { class: "scroll", tabindex: 0, role: "rowgroup" }, this.space);
    this.element = h("div", { class: "table", role: "table", "aria-label": label }, h("div", { role: "rowgroup" }, this.head), this.body);
    this.body.addEventListener("scroll", () => this.draw(), { passive: true });
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.body);
  }

  show(items) {
    this.items = items;
    this.element.setAttribute("aria-rowcount", items.length + 1);
    this.draw(true);
  }

  draw(anew = false) {
    const height = this.height();
    this.space.style.setProperty("height", `${this.items.length * height}px`);
    const from = Math.max(0, Math.floor(this.body.scrollTop / height) - EXTRA);
    const to = Math.min(this.items.length, Math.ceil((this.body.scrollTop + this.body.clientHeight) / height) + EXTRA);
    const wanted = new Map();
    for (let at = from; at < to; at += 1) wanted.set(this.key(this.items[at]), at);
    const focused = this.space.contains(document.activeElement) ? document.activeElement.closest(".tr")?.dataset.id : null;
    for (const [id, element] of this.rows) if (!wanted.has(id)) { element.remove(); this.rows.delete(id); }
    for (const [id, at] of wanted) this.place(id, at, height, anew);
    if (focused) this.space.querySelector(`[data-id="${CSS.escape(focused)}"] a`)?.focus({ preventScroll: true });
    this.seen(this.items.slice(from, to));
  }

  place(id, at, height, anew) {
    let element = this.rows.get(id);
    const item = this.items[at];
    if (!element) {
      element = h("div", { class: "tr", role: "row", "data-id": id });
      this.rows.set(id, element);
      this.space.append(element);
    }
    if (anew || element.item !== item) {
      element.item = item;
      element.replaceChildren(...this.row(item));
    }
    element.setAttribute("aria-rowindex", at + 2);
    element.style.setProperty("top", `${at * height}px`);
  }
}
