// Whose each GPU is, where tenants own what there is: asked for once, and again when jobs come and go.

import { get } from "./api.js";
import { throttled } from "./dom.js";
import { store } from "./store.js";

const PAUSE = 2000;
/** Of a large cluster it is work to tell: the controller rests so many times as long as it took. */
const REST = 25;

/** What `GET /v1/tenants` said last; null: nobody asked, or there are no tenants. */
let told = null;
/** Node -> device -> patch. */
let by = new Map();

function index(patches) {
  const found = new Map();
  for (const patch of patches) {
    const devices = found.get(patch.node) ?? [];
    for (const device of patch.devices) devices[device] = patch;
    found.set(patch.node, devices);
  }
  return found;
}

/** Calls with what is known, now and after every change, until the signal ends it. */
export async function watch(call, signal) {
  if (!store.about.tenants) { told = null; by = new Map(); return; }
  let took = 0;
  const ask = async () => {
    const begun = performance.now();
    const answer = await get("tenants", {}, { signal });
    if (signal.aborted) return;
    took = performance.now() - begun;
    told = answer;
    by = index(answer.patches);
    call(answer);
  };
  const later = throttled(() => Math.max(PAUSE, REST * took), ask);
  signal.addEventListener("abort", later.cancel);
  store.on(["jobs", "nodes"], later, signal);
  await ask();
}

export const tenants = () => told?.tenants ?? [];

/** The patches of a node's GPUs, by device; empty where nobody owns anything. */
export const ownersOn = (node) => by.get(node) ?? [];

const USES = { used: "in use by its owner", idle: "idle", lent: "lent", returning: "on its way back", bad: "out of service" };

/** `lent, of vision`. */
export const saidOf = ({ tenant, use }) => `${USES[use] ?? use}, ${tenant ? `of ${tenant}` : "nobody's"}`;
