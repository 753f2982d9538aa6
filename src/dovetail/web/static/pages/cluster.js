// The cluster at a glance: figures, then every GPU and who is on it.

import { get } from "../api.js";
import { h, refill, throttled } from "../dom.js";
import { cores, coreWords, count, counted, memory, number, percent, span } from "../format.js";
import { tenants, watch } from "../owners.js";
import { choice, heading, person, tenant, tile } from "../parts.js";
import { occupation, store } from "../store.js";
import { nodeCard } from "./node_card.js";
import { overview } from "./overview.js";

const CARDS = 36;

export async function show(root, signal) {
  const tiles = h("section", { class: "tiles", "aria-label": "Now" });
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Colours" });
  const map = h("section", { class: "map", "aria-label": "Nodes" });
  const ways = [["user", "By user"], ["use", "By use"], ...(store.about.tenants ? [["tenant", "By tenant"]] : [])];
  const chosen = sessionStorage.getItem("dovetail-map");
  let by = ways.some(([way]) => way === chosen) ? chosen : "user";
  const draw = () => {
    const on = occupation();
    refill(tiles, figures(on));
    refill(legend, by === "tenant" ? owners() : users());
    if (on.size <= CARDS) { map.classList.add("cards"); refill(map, [...on.values()].map((each) => nodeCard(each, by))); return; }
    map.classList.remove("cards");
    overview(map, [...on.values()], by, signal);
  };
  const pick = (value) => { by = value; sessionStorage.setItem("dovetail-map", value); draw(); };
  root.append(
    heading("Cluster", h("span", { class: "quiet", text: `${store.about.policy} · ${store.about.engine}` })),
    store.about.virtual ? h("p", { class: "hint", text: "The GPUs are virtual: made up, to try things out. What runs, really runs." }) : "",
    tiles,
    h("div", { class: "bar-above" }, legend, choice("Colour by", ways, by, pick)),
    map);
  draw();
  const later = throttled(250, draw);
  store.on(["jobs", "nodes", "sample", "theme"], later, signal);
  signal.addEventListener("abort", later.cancel);
  watch(later, signal);
  if (!store.sample) {
    const samples = await get("series", { most: 2 });
    if (samples.length && !store.sample) { store.sample = samples.at(-1); later(); }
  }
}

function figures(on) {
  const nodes = [...on.values()];
  const sum = (of) => nodes.reduce((total, each) => total + (of(each) ?? 0), 0);
  const gpus = sum((each) => each.node.gpus);
  const busy = sum((each) => each.devices.reduce((total, held) => total + held.reduce((part, [, share]) => part + share / 1000, 0), 0));
  const waiting = [...store.jobs.values()].filter((job) => job.state === "waiting");
  const held = [...store.jobs.values()].filter((job) => job.state === "held").length;
  const running = [...store.jobs.values()].filter((job) => job.places.length).length;
  const age = waiting.length ? waiting.reduce((total, job) => total + store.now() - job.submitted, 0) / waiting.length : 0;
  const measured = nodes.some((each) => each.measured);
  const bar = (part, whole, used) => h("div", { class: "bar thin", "aria-hidden": "true" },
    h("i", { class: "granted", style: { width: `${whole ? (100 * part) / whole : 0}%` } }),
    used === null ? null : h("i", { class: "used", style: { width: `${whole ? Math.min(100, (100 * used) / whole) : 0}%` } }));
  const resource = (name, whole, granted, used, word, all = word) =>
    tile(name, percent(granted, whole), `${word(granted)} of ${all(whole)} granted${measured ? `, ${word(used)} used` : ""}`, bar(granted, whole, measured ? used : null));
  return [
    tile("GPUs", percent(busy, gpus), `${number(busy)} of ${count(gpus)} busy`, bar(busy, gpus, busy)),
    resource("CPU", sum((each) => each.node.cpu), sum((each) => each.cpu), sum((each) => each.used), cores, coreWords),
    resource("Memory", sum((each) => each.node.memory), sum((each) => each.memory), sum((each) => each.memoryUsed), memory),
    tile("Running", count(running), `on ${counted(nodes.filter((each) => each.jobs.length).length, "node")} of ${count(nodes.length)}`),
    tile("Waiting", count(waiting.length), waiting.length ? `${span(age)} on average so far${held ? `, ${held} held` : ""}` : held ? `${held} held` : "nobody waits"),
  ];
}

function users() {
  const totals = new Map();
  for (const job of store.jobs.values())
    for (const [, devices, , , share] of job.places) totals.set(job.owner, (totals.get(job.owner) ?? 0) + (devices.length * share) / 1000);
  const ranked = [...totals].sort((a, b) => b[1] - a[1]);
  const more = ranked.slice(12).reduce((sum, [, gpus]) => sum + gpus, 0);
  return [...ranked.slice(0, 12).map(([owner, gpus]) => h("span", { class: "entry" }, person(owner), h("span", { class: "quiet", text: number(gpus) }))),
    more ? h("span", { class: "quiet", text: `and ${ranked.length - 12} more with ${number(more)}` }) : null];
}

function owners() {
  return tenants().map((each) => h("span", { class: "entry" }, tenant(each.name), h("span", { class: "quiet", text: `${number(each.used)} of ${number(each.gpus)}${each.lent ? `, ${number(each.lent)} lent` : ""}` })));
}
