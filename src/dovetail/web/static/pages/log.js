// What a job writes, as it writes it: the latest attempt, or one that somebody chose.

import { get } from "../api.js";
import { h } from "../dom.js";

const MOST = 400_000;
const LATEST = 0;
const CODES = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]|\r(?!\n)/g;
const pause = () => new Promise((done) => setTimeout(done, 1000));

/** Fills the element with a job's output until the signal ends it. */
export function follow(element, job, signal) {
  const view = {
    text: h("pre", { class: "output", tabindex: 0, role: "region", "aria-label": "What the job wrote", hidden: true }),
    note: h("span", { class: "quiet", role: "status" }),
    stick: h("input", { type: "checkbox", id: "stick", checked: true }),
  };
  let chosen = new AbortController();
  const begin = (attempt) => {
    chosen.abort();
    chosen = new AbortController();
    view.text.replaceChildren();
    read(view, job, attempt, AbortSignal.any([signal, chosen.signal]));
  };
  const which = h("select", { id: "attempt", "aria-label": "Attempt", hidden: true, onchange: () => begin(Number(which.value)) });
  const offer = () => offerAttempts(which, job().attempts);
  element.append(h("div", { class: "row" }, h("h2", { text: "Log" }), which, view.note, h("label", { class: "right", for: "stick" }, view.stick, " follow")), view.text);
  offer();
  const timer = setInterval(offer, 1000);
  signal.addEventListener("abort", () => clearInterval(timer));
  begin(LATEST);
}

/** One attempt is no choice; later ones are added as they come. */
function offerAttempts(which, attempts) {
  if (attempts < 2 || which.options.length > attempts) return;
  const chosen = which.value;
  const numbers = Array.from({ length: attempts }, (_, index) => attempts - index);
  which.replaceChildren(h("option", { value: LATEST, text: "latest attempt" }), ...numbers.map((number) => h("option", { value: number, text: `attempt ${number}` })));
  which.value = chosen || String(LATEST);
  which.hidden = false;
}

/** Until nothing more can come. The latest attempt goes over into the next one. */
async function read({ text, note, stick }, job, wanted, signal) {
  let cursor = "";
  let attempt = wanted;
  for (; !signal.aborted; await pause()) {
    if (!job().attempts) { note.textContent = "nothing yet: it has not started"; continue; }
    let piece;
    try { piece = await get(`jobs/${job().id}/log`, cursor ? { cursor, attempt } : { tail: 1000, attempt: wanted }); } catch (error) { if (!signal.aborted) note.textContent = error.message; return; }
    if (signal.aborted) return;
    if (attempt && attempt !== piece.attempt) text.append(`\n── attempt ${piece.attempt} ──\n`);
    ({ cursor, attempt } = piece);
    text.hidden = false;
    if (piece.text) append(text, piece.text.replace(CODES, ""), stick.checked);
    const silent = piece.over && !piece.text && !text.textContent;
    note.textContent = `attempt ${attempt}${piece.over ? ", over" : ""}${silent ? "; it wrote nothing" : ""}`;
    if (!piece.over || piece.text) continue;
    text.hidden = silent;
    if (wanted || job().ended) return;
    // A later attempt begins a log of its own.
    if (job().attempts > attempt) cursor = "";
  }
}

function append(element, more, stick) {
  element.append(more);
  if (element.textContent.length > MOST) element.textContent = element.textContent.slice(-MOST / 2);
  if (stick) element.scrollTop = element.scrollHeight;
}
