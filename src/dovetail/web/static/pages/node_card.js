// One node: its GPUs with who is on them, CPU and memory granted and used.

import { h } from "../dom.js";
import { label, number, percent } from "../format.js";
import { ownersOn, saidOf } from "../owners.js";
import { meter } from "../parts.js";
import { store } from "../store.js";

export function nodeCard(on, by) {
  const { node } = on;
  const busy = on.devices.reduce((sum, held) => sum + held.reduce((part, [, share]) => part + share / 1000, 0), 0);
  const closed = node.state !== "open";
  return h("article", { class: `card node${closed ? " closed" : ""}` },
    h("header", {}, h("h2", { title: node.name, text: node.name }), h("span", { class: "quiet", text: node.type }),
      closed ? h("span", { class: "badge failed", text: node.state }) : null,
      h("span", { class: "figure", text: node.gpus ? `${number(busy)} / ${node.gpus}` : "no GPUs" })),
    h("div", { class: "strip", style: { "--columns": Math.max(1, Math.min(node.gpus, 8)) } }, segments(on, by)),
    owned(node),
    node.cpu === null ? null : meter("CPU", node.cpu, on.cpu, on.measured ? on.used : null, said(on.cpu, node.cpu, on.measured ? on.used : null, 1000, "cores")),
    node.memory === null ? null : meter("Memory", node.memory, on.memory, on.measured ? on.memoryUsed : null, said(on.memory, node.memory, on.measured ? on.memoryUsed : null, 1024, "GiB")));
}

const said = (granted, whole, used, size, unit) => `${number(granted / size)} of ${number(whole / size)} ${unit}${used === null ? "" : `, ${number(used / size)} used`}`;

/** Whose the GPUs above are, and whether they are lent. */
function owned(node) {
  const owners = ownersOn(node.name);
  if (!owners.length) return null;
  const pieces = [];
  owners.forEach((patch, device) => {
    const last = pieces.at(-1);
    if (last && last.patch.tenant === patch.tenant && last.patch.use === patch.use && device % 8) last.devices += 1;
    else pieces.push({ patch, devices: 1 });
  });
  return h("div", { class: "strip", style: { "--columns": Math.max(1, Math.min(node.gpus, 8)) } }, pieces.map(({ patch, devices }) =>
    h("span", { class: `owner ${patch.use}${patch.tenant ? ` hue-${store.tenantHue(patch.tenant)}` : ""}`, style: { "grid-column": `span ${devices}` }, title: saidOf(patch), text: `${patch.tenant || "–"}${["lent", "returning", "bad"].includes(patch.use) ? ` · ${patch.use}` : ""}` })));
}

/** Neighbouring GPUs of one job are one piece. */
function segments(on, by) {
  const pieces = [];
  const owners = by === "tenant" ? ownersOn(on.node.name) : [];
  const foreign = new Set(on.node.foreign);
  on.devices.forEach((held, device) => {
    const whole = held.length === 1 && held[0][1] >= 1000 ? held[0][0] : null;
    const last = pieces.at(-1);
    // A piece ends with its row of eight.
    if (whole && last?.job === whole && last.owner === owners[device]?.tenant && device % 8) last.devices.push(device);
    else pieces.push({ job: whole, held, devices: [device], foreign: foreign.has(device), owner: owners[device]?.tenant });
  });
  return pieces.map((piece) => segment(piece, by));
}

function segment({ job, held, devices, foreign, owner }, by) {
  const style = { "grid-column": `span ${devices.length}` };
  if (job) return link(job, style, by, owner);
  if (held.length) return h("div", { class: "gpu shared", style }, held.map(([each, share]) => link(each, { "flex-grow": share }, by, owner)));
  if (foreign) return h("div", { class: "gpu foreign", style, title: `GPU ${devices[0]} is used by somebody outside` }, "other");
  return h("div", { class: "gpu free", style, title: `GPU ${devices[0]} is free` }, h("span", { class: "unseen", text: `GPU ${devices[0]} free` }));
}

function link(job, style, by, owner) {
  const use = useOf(job);
  const kind = colouring(job, by, use, owner);
  const words = `${job.name}, job ${label(job)} of ${job.owner}, ${job.state}${use === null ? "" : `, uses ${percent(use, 1)} of its ${typeof store.measured[job.id]?.[2] === "number" ? "GPUs" : "CPU"}`}`;
  return h("a", { class: `gpu held ${kind} ${job.state}`, href: `#/jobs/${job.id}`, title: words, "aria-label": words, "data-key": `gpu-${job.id}`, style: { ...style, "--use": use ?? 0 } },
    h("b", { text: label(job) }), h("span", { text: by === "use" && use !== null ? percent(use, 1) : job.name }));
}

function colouring(job, by, use, owner) {
  if (by === "use") return use === null ? "unknown" : "use";
  if (by === "tenant") return owner ? `hue-${store.tenantHue(owner)}` : "unknown";
  return `hue-${store.hue(job.owner)}`;
}

/** What a job makes of its GPUs or, where nobody measures these, of its CPU; null: nobody knows. */
export function useOf(job) {
  const [used, , gpu] = store.measured[job.id] ?? [];
  if (typeof gpu === "number") return gpu / 100;
  const granted = job.places.reduce((sum, [, , cpu]) => sum + cpu, 0);
  return used === undefined || used === null || !granted ? null : Math.min(1, used / granted);
}
