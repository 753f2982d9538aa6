// Many nodes as one picture: each a tile, each GPU a cell of it. Arrow keys walk over it.

import { colour, h } from "../dom.js";
import { count, counted } from "../format.js";
import { ownersOn } from "../owners.js";
import { store } from "../store.js";
import { nodeCard, useOf } from "./node_card.js";

const CELL = 7;
const GAP = 1;
const BETWEEN = 7;

let colours = null;
store.addEventListener("theme", () => { colours = null; });
const palette = () => (colours ??= {
  hues: Array.from({ length: 8 }, (_, hue) => colour(`--hue-${hue}`)),
  free: colour("--cell"), bad: colour("--bad"), ink: colour("--ink"), used: colour("--accent"), quiet: colour("--quiet"),
});

/** Draws into the map; the drawing stays, and is drawn again with what is new. */
export function overview(map, nodes, by, signal) {
  const view = map.overview ?? (map.overview = build(map, signal));
  Object.assign(view, { nodes, by });
  view.draw();
}

function build(map, signal) {
  const canvas = h("canvas", { tabindex: 0, role: "application", "aria-roledescription": "map of nodes", "aria-label": "All nodes. Arrow keys go from node to node." });
  const panel = h("aside", { class: "chosen", "aria-live": "polite" });
  const view = { canvas, panel, nodes: [], by: "user", chosen: 0, columns: 1, pinned: false };
  view.draw = () => { draw(view); describe(view); };
  const pick = (event) => {
    const box = canvas.getBoundingClientRect();
    const index = at(view, event.clientX - box.left, event.clientY - box.top);
    if (index !== null && index !== view.chosen) { view.chosen = index; view.draw(); }
  };
  canvas.addEventListener("pointermove", (event) => { if (!view.pinned) pick(event); });
  canvas.addEventListener("pointerdown", (event) => { view.pinned = false; pick(event); view.pinned = true; });
  canvas.addEventListener("pointerleave", () => { view.pinned = false; });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: view.columns, ArrowUp: -view.columns, Home: -1e9, End: 1e9 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    view.chosen = Math.max(0, Math.min(view.nodes.length - 1, view.chosen + by));
    view.draw();
  });
  map.replaceChildren(h("div", { class: "picture" }, canvas), panel);
  const watch = new ResizeObserver(() => { if (view.nodes.length) draw(view); });
  watch.observe(canvas.parentElement);
  signal.addEventListener("abort", () => watch.disconnect());
  return view;
}

function shape(view) {
  const gpus = Math.max(1, ...view.nodes.map(({ node }) => node.gpus));
  const across = gpus <= 4 ? gpus : Math.ceil(gpus / 2);
  const rows = Math.ceil(gpus / across);
  return { across, width: across * (CELL + GAP) + BETWEEN, height: rows * (CELL + GAP) + BETWEEN };
}

function draw(view) {
  const { canvas, nodes } = view;
  const room = canvas.parentElement.clientWidth;
  const { across, width, height } = shape(view);
  view.columns = Math.max(1, Math.floor((room + BETWEEN) / width));
  const tall = Math.ceil(nodes.length / view.columns) * height;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(room * ratio) || canvas.height !== Math.round(tall * ratio)) {
    canvas.width = Math.round(room * ratio);
    canvas.height = Math.round(tall * ratio);
    canvas.style.setProperty("width", `${room}px`);
    canvas.style.setProperty("height", `${tall}px`);
  }
  const pen = canvas.getContext("2d");
  const paint = palette();
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, room, tall);
  nodes.forEach((on, index) => {
    const left = (index % view.columns) * width + BETWEEN / 2;
    const top = Math.floor(index / view.columns) * height + BETWEEN / 2;
    const owners = view.by === "tenant" ? ownersOn(on.node.name) : null;
    on.devices.forEach((held, device) => {
      const x = left + (device % across) * (CELL + GAP);
      const y = top + Math.floor(device / across) * (CELL + GAP);
      if (owners) ownedCell(pen, paint, owners[device], x, y);
      else cell(pen, paint, view.by, held, x, y);
    });
    if (on.node.state !== "open") frame(pen, paint.bad, left, top, width, height, 1);
    if (index === view.chosen) frame(pen, paint.ink, left, top, width, height, 1.5);
  });
}

/** Full where its owner uses it, half where it is lent, pale where it is idle. */
function ownedCell(pen, paint, patch, x, y) {
  pen.fillStyle = paint.free;
  pen.fillRect(x, y, CELL, CELL);
  if (!patch?.tenant) return;
  pen.fillStyle = patch.use === "bad" ? paint.bad : paint.hues[store.tenantHue(patch.tenant)];
  pen.globalAlpha = patch.use === "idle" ? 0.3 : 1;
  if (patch.use === "lent") { pen.beginPath(); pen.moveTo(x, y); pen.lineTo(x + CELL, y); pen.lineTo(x, y + CELL); pen.fill(); } else pen.fillRect(x, y, CELL, CELL);
  pen.globalAlpha = 1;
}

function cell(pen, paint, by, held, x, y) {
  pen.globalAlpha = 1;
  pen.fillStyle = paint.free;
  pen.fillRect(x, y, CELL, CELL);
  if (!held.length) return;
  let top = y;
  for (const [job, share] of held) {
    const use = by === "use" ? useOf(job) : null;
    pen.fillStyle = by === "user" ? paint.hues[store.hue(job.owner)] : use === null ? paint.quiet : paint.used;
    pen.globalAlpha = by === "use" ? (use === null ? 0.35 : 0.2 + 0.8 * use) : job.state === "running" ? 1 : 0.5;
    const part = (CELL * share) / 1000;
    pen.fillRect(x, top, CELL, part);
    top += part;
  }
  pen.globalAlpha = 1;
}

function frame(pen, ink, left, top, width, height, thick) {
  pen.strokeStyle = ink;
  pen.lineWidth = thick;
  pen.strokeRect(left - 2.5, top - 2.5, width - BETWEEN + 4, height - BETWEEN + 4);
}

function at(view, x, y) {
  const { width, height } = shape(view);
  const column = Math.floor(x / width);
  const index = Math.floor(y / height) * view.columns + column;
  return column < view.columns && index >= 0 && index < view.nodes.length ? index : null;
}

function describe(view) {
  view.chosen = Math.min(view.chosen, view.nodes.length - 1);
  const on = view.nodes[view.chosen];
  const closed = view.nodes.filter(({ node }) => node.state !== "open").length;
  view.panel.replaceChildren(
    h("p", { class: "quiet", text: `${counted(view.nodes.length, "node")}${closed ? `, ${count(closed)} closed` : ""}. Point at one, or walk with the arrow keys.` }),
    nodeCard(on, view.by));
}
