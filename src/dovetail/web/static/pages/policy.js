// What decides here, in words.

import { get } from "../api.js";
import { h } from "../dom.js";
import { heading } from "../parts.js";
import { store } from "../store.js";

const QUESTIONS = { ordering: "Who goes first?", placement: "Where?", allocator: "With how much CPU and memory?", predictor: "How long is it believed to take?" };

export async function show(root) {
  const rules = await get("policy");
  root.append(
    heading("Policy", h("code", { class: "big", text: rules.policy })),
    h("p", { class: "lead", text: `Every decision here is made by these four parts${rules.source ? `, as published: ${rules.source}` : ""}. The same parts decide in a simulation.` }),
    h("div", { class: "pieces" }, rules.pieces.map(piece)),
    h("p", { class: "quiet" }, "Jobs run on: ", store.about.engine),
    h("details", { class: "card" }, h("summary", { text: `What else could decide (${rules.ways.length})` }),
      h("dl", { class: "ways" }, rules.ways.flatMap((way) => [h("dt", {}, h("a", { href: `#/what-if/${encodeURIComponent(way.name)}`, text: way.name })), h("dd", { text: plain(way.about) })]))));
}

const plain = (text) => text.replaceAll("`", "");

function piece(part) {
  return h("section", { class: "card" },
    h("h2", { text: QUESTIONS[part.kind] ?? part.kind }),
    h("p", {}, h("b", { text: part.name }), h("span", { class: "quiet", text: ` — ${part.kind}` })),
    h("p", { text: plain(part.about) }),
    part.parameters.length ? h("table", { class: "small" },
      h("caption", { class: "unseen", text: `Parameters of ${part.name}` }),
      h("tbody", {}, part.parameters.map((each) => h("tr", {}, h("th", { scope: "row" }, h("code", { text: each.name.replaceAll("_", "-") })), h("td", {}, h("code", { text: each.value === "None" ? "none" : each.value })), h("td", { class: "quiet", text: plain(each.about) }))))) : null,
    part.more && part.more !== part.about ? h("details", {}, h("summary", { text: "More" }), part.more.split("\n\n").map((each) => h("p", { class: "quiet", text: plain(each) }))) : null);
}
