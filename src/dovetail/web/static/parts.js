// The small things all pages are made of.

import { h } from "./dom.js";
import { exact, moment, span } from "./format.js";
import { store } from "./store.js";

export const ENDED = new Set(["done", "failed", "cancelled", "rejected"]);

/** A state as a word with a colour; the word alone says it. */
export const badge = (state) => h("span", { class: `badge ${state}`, text: state });

/** A user with the colour they have everywhere. */
export const person = (owner) =>
  h("span", { class: "person", title: owner }, h("i", { class: `dot hue-${store.hue(owner)}`, "aria-hidden": "true" }), h("span", { text: owner || "nobody" }));

/** A tenant with a colour of its own. */
export const tenant = (name) =>
  h("span", { class: "person", title: name }, h("i", { class: `dot hue-${store.tenantHue(name)}`, "aria-hidden": "true" }), h("span", { text: name || "nobody" }));

/** A bar: granted, and inside it what is used. */
export function meter(label, whole, granted, used, said) {
  const share = (value) => `${whole ? Math.min(100, (100 * value) / whole) : 0}%`;
  return h("div", { class: "meter" },
    h("span", { class: "label", text: label }),
    h("div", { class: "bar", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": whole, "aria-valuenow": granted, "aria-valuetext": said },
      h("i", { class: "granted", style: { width: share(granted) } }),
      used === null ? null : h("i", { class: "used", style: { width: share(used) } })),
    h("span", { class: "said", text: said }));
}

/** One figure with its name and a word on it. */
export const tile = (name, figure, more, extra) =>
  h("div", { class: "tile" }, h("span", { class: "name", text: name }), h("strong", { text: figure }), h("span", { class: "more" }, more), extra ?? null);

export const when = (wall) => h("time", { datetime: wall ? new Date(wall * 1000).toISOString() : "", title: exact(wall), text: moment(wall) });

/** A span of time that goes on: pages call `tick` to let it. */
export function since(wall, prefix = "") {
  const element = h("span", { class: "since", "data-since": wall, "data-prefix": prefix });
  element.textContent = prefix + span(store.now() - wall);
  return element;
}

export function tick(root) {
  for (const element of root.querySelectorAll("[data-since]")) {
    const text = element.dataset.prefix + span(store.now() - Number(element.dataset.since));
    if (element.textContent !== text) element.textContent = text;
  }
}

export const heading = (title, ...more) =>
  h("div", { class: "heading" }, h("h1", { text: title }), ...more);

export const empty = (sentence, ...more) => h("div", { class: "empty" }, h("p", { text: sentence }), ...more);

/** A table: `columns` are [title, class], `rows` cells of which the first names the row. */
export function table(label, columns, rows) {
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label, "data-key": label }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { scope: "col", class: kind ?? "", text: title })))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, index) => (index ? h("td", { class: columns[index][1] ?? "" }, cell) : h("th", { scope: "row" }, cell))))))));
}

/** A row of buttons of which one is chosen. */
export function choice(label, options, chosen, pick) {
  const group = h("div", { class: "choice", role: "group", "aria-label": label });
  const draw = (now) => group.replaceChildren(...options.map(([value, text]) =>
    h("button", { type: "button", "aria-pressed": String(value === now), "data-key": `${label}-${value}`, onclick: () => { draw(value); group.querySelector("[aria-pressed=true]")?.focus(); pick(value); }, text })));
  draw(chosen);
  return group;
}

/** A sentence at the lower edge, for a while. */
export function notify(sentence, kind = "bad") {
  const box = h("div", { class: `notice ${kind}` }, h("span", { text: sentence }), h("button", { class: "ghost", type: "button", "aria-label": "Close", onclick: () => box.remove(), text: "×" }));
  document.getElementById("notices").append(box);
  setTimeout(() => box.remove(), 8000);
}

/** Asks before something is done that cannot be undone. */
export function confirmed(question, verb) {
  const dialog = h("dialog", {},
    h("form", { method: "dialog" }, h("p", { text: question }),
      h("div", { class: "row" }, h("button", { value: "no", text: "Leave it" }), h("button", { class: "danger", value: "yes", text: verb }))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => { dialog.remove(); done(dialog.returnValue === "yes"); }));
}
