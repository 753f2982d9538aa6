// The queue: everything that has not ended, with the reason why it waits; and what has ended.

import { get } from "../api.js";
import { h, throttled } from "../dom.js";
import { count, label, number, percent, ranges, span } from "../format.js";
import { badge, choice, empty, heading, person, since, when } from "../parts.js";
import { store } from "../store.js";
import { LongTable } from "../virtual.js";

const COLUMNS = [["id", "Job", "id"], ["name", "Name", "name"], ["owner", "User", "owner"], ["state", "State", "state"], ["gpus", "GPUs", "num"], ["time", "For", "num time"], ["why", "Where; or when, and why not yet", "why"]];
const VIEWS = [["live", "All live"], ["waiting", "Waiting"], ["running", "Running"], ["mine", "Mine"], ["ended", "Ended"]];
const FRESH = 5000;
/** Jobs that have ended, asked for at once; more come when somebody scrolls to the last. */
const PAGE = 60;
/** Who searches gets a screen full of them, among so many of the latest. */
const SCREEN = 30;
const SEARCHED = 3000;
const AHEAD = 30_000;

export async function show(root, signal) {
  const state = { view: sessionStorage.getItem("dovetail-view") ?? "live", text: "", ended: [], more: false };
  const reasons = new Map();
  const note = h("span", { class: "quiet", role: "status" });
  const search = h("input", { type: "search", placeholder: "Name, user or number", "aria-label": "Search", oninput: () => { state.text = search.value.trim().toLowerCase(); draw(); } });
  const phone = matchMedia("(max-width: 720px)");
  const table = new LongTable({ label: "Jobs", columns: COLUMNS, key: (job) => String(job.id), row: (job) => cells(job, reasons), height: () => (phone.matches ? 62 : 38), seen: (items) => { ask(); if (items.at(-1) === state.ended.at(-1)) earlier(); } });
  const draw = () => {
    const items = found(state);
    note.textContent = state.view === "ended" ? `${count(items.length)} of ${count(state.ended.length)}${state.more ? " and more" : ""}` : `${count(items.length)} of ${count(store.jobs.size)}`;
    if (state.text && items.length < SCREEN && state.ended.length < SEARCHED) earlier();
    hint.hidden = items.length > 0;
    table.element.hidden = !items.length;
    table.show(items);
  };
  const hint = empty("No jobs here.", h("code", { text: "dovetail submit --gpus 1 -- python train.py" }));
  const later = throttled(300, draw);
  const ask = throttled(400, () => refresh(table, reasons, draw));
  const earlier = throttled(300, async () => { if (state.view === "ended" && state.more) { await remember(state); if (!signal.aborted) draw(); } });
  const pick = async (view) => {
    state.view = view;
    sessionStorage.setItem("dovetail-view", view);
    if (view === "ended") await latest(state);
    table.body.scrollTop = 0;
    draw();
  };
  root.classList.add("tall");
  root.append(heading("Jobs", note), h("div", { class: "bar-above" }, choice("Which", VIEWS, state.view, pick), search), hint, table.element);
  await pick(state.view);
  store.on(["jobs"], (touched) => { if (touched) for (const id of touched) reasons.delete(id); if (state.view !== "ended") later(); }, signal);
  store.on(["sample"], () => { if (state.view !== "ended") later(); }, signal);
  store.on(["jobs"], throttled(2000, async () => { if (state.view === "ended") { await latest(state); if (!signal.aborted) draw(); } }), signal);
  phone.addEventListener("change", draw, { signal });
  const foresee = async () => { if (!document.hidden && store.jobs.size) { store.estimates = await get("when"); if (!signal.aborted) later(); } };
  const timer = setInterval(foresee, AHEAD);
  signal.addEventListener("abort", () => clearInterval(timer));
  foresee();
  signal.addEventListener("abort", () => { later.cancel(); ask.cancel(); earlier.cancel(); });
}

/** Who ended lately, in front of those that are known. */
async function latest(state) {
  const page = await get("history", { limit: PAGE });
  const told = new Set(page.map((job) => job.id));
  const known = state.ended.filter((job) => !told.has(job.id));
  // Where all of a page is new, others may lie in between.
  const whole = page.length < PAGE || known.length < state.ended.length;
  if (!state.ended.length || !whole) { state.ended = page; state.more = page.length === PAGE; } else state.ended = [...page, ...known];
}

/** The page before the earliest that is known. */
async function remember(state) {
  const page = await get("history", { limit: PAGE, before: state.ended.at(-1).id });
  state.ended = [...state.ended, ...page];
  state.more = page.length === PAGE;
}

function found({ view, text, ended }) {
  const all = view === "ended" ? ended : [...store.jobs.values()];
  const wanted = { waiting: (job) => !job.places.length, running: (job) => job.places.length > 0, mine: (job) => job.owner === store.about.you }[view] ?? (() => true);
  const fits = (job) => !text || job.name.toLowerCase().includes(text) || job.owner.toLowerCase().includes(text) || label(job).startsWith(text);
  const items = all.filter((job) => wanted(job) && fits(job));
  // What runs first, then in order of submission.
  return view === "ended" ? items : items.sort((a, b) => (b.places.length > 0) - (a.places.length > 0) || a.id - b.id);
}

/** Why the jobs that are seen wait: asked for these alone, and again after a while. */
async function refresh(table, reasons, draw) {
  const now = Date.now();
  const stale = [...table.rows.values()].map(({ item }) => item)
    .filter((job) => job && !job.ended && !job.places.length && now - (reasons.get(job.id)?.asked ?? 0) > FRESH).map((job) => job.id);
  if (!stale.length) return;
  for (const id of stale) reasons.set(id, { text: reasons.get(id)?.text ?? "", asked: now });
  const said = await get("reasons", { jobs: stale.join(",") });
  for (const [id, text] of Object.entries(said)) reasons.set(Number(id), { text, asked: now });
  draw();
}

function cells(job, reasons) {
  const cell = (kind, ...children) => h("div", { class: `td ${kind}`, role: "cell" }, ...children);
  return [
    cell("id", h("a", { href: `#/jobs/${job.id}`, text: label(job), "aria-label": `Job ${label(job)}, ${job.name}` })),
    cell("name", h("span", { title: job.name, text: job.name })),
    cell("owner", person(job.owner)),
    cell("state", badge(job.state)),
    cell("num gpus", number(job.gpus)),
    cell("num time", duration(job)),
    cell("why", why(job, reasons)),
  ];
}

function duration(job) {
  if (job.ended) return h("span", { title: "from submission to end", text: span(job.ended - job.submitted) });
  return since(job.places.length ? (job.started ?? job.submitted) : job.submitted);
}

function why(job, reasons) {
  if (job.ended) return [when(job.ended), h("span", { class: "quiet", title: job.reason, text: ` ${job.reason ?? ""}` })];
  if (!job.places.length) {
    const text = reasons.get(job.id)?.text ?? "";
    const middle = store.estimates[job.id]?.start.middle;
    const soon = typeof middle === "number" ? h("b", { class: "soon", text: `${middle < 1 ? "any moment" : `in ~${span(middle)}`}` }) : null;
    return [soon, h("span", { class: "quiet", title: text, text })];
  }
  const on = job.places.map(([node, devices]) => (devices.length ? `${node}: GPU ${ranges(devices)}` : node)).join(" + ");
  const [, , , steps, total] = store.measured[job.id] ?? [];
  return [total ? h("span", { class: "progress", role: "img", "aria-label": `${percent(steps, total)} done` }, h("i", { style: { width: `${Math.min(100, (100 * steps) / total)}%` } })) : null, h("span", { title: on, text: on })];
}
