// What a job writes, as it writes it.

import { get } from "../api.js";
import { h } from "../dom.js";

const MOST = 400_000;
const CODES = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]|\r(?!\n)/g;

/** Fills the element with the latest attempt's output until the signal ends it. */
export async function follow(element, job, signal) {
  const text = h("pre", { class: "output", tabindex: 0, "aria-label": "What the job wrote" });
  const note = h("span", { class: "quiet", text: "" });
  const stick = h("input", { type: "checkbox", id: "stick", checked: true });
  element.append(h("div", { class: "row" }, h("h2", { text: "Log" }), note, h("label", { class: "right", for: "stick" }, stick, " follow")), text);
  text.hidden = true;
  let cursor = "";
  let attempt = 0;
  while (!signal.aborted) {
    const idle = job().attempts === 0;
    if (idle) note.textContent = "nothing yet: it has not started";
    else {
      let piece;
      try { piece = await get(`jobs/${job().id}/log`, cursor ? { cursor, attempt } : { tail: 1000 }); } catch (error) { note.textContent = error.message; return; }
      if (signal.aborted) return;
      if (attempt !== piece.attempt) { if (attempt) text.append(`\n── attempt ${piece.attempt} ──\n`); attempt = piece.attempt; }
      ({ cursor } = piece);
      note.textContent = `attempt ${attempt}${piece.over ? ", over" : ""}`;
      text.hidden = false;
      if (piece.text) append(text, piece.text.replace(CODES, ""), stick.checked);
      if (piece.over && job().ended && !piece.text) { if (!text.textContent) { note.textContent += "; it wrote nothing"; text.hidden = true; } return; }
      // A later attempt begins a log of its own.
      if (piece.over && job().attempts > attempt) cursor = "";
    }
    await new Promise((done) => setTimeout(done, 1000));
  }
}

function append(element, more, stick) {
  element.append(more);
  if (element.textContent.length > MOST) element.textContent = element.textContent.slice(-MOST / 2);
  if (stick) element.scrollTop = element.scrollHeight;
}
