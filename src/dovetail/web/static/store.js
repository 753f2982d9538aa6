// What is known of the cluster: loaded once, then kept up by the feed. Pages subscribe to it.

import { get, listen } from "./api.js";

const PATIENCE = [1, 2, 4, 8, 15];

class Store extends EventTarget {
  jobs = new Map();
  nodes = [];
  /** By job: [CPU used, memory used, GPU percent, steps, steps to do]. */
  measured = {};
  sample = null;
  /** By job that waits: when it starts and ends. */
  estimates = {};
  about = null;
  /** Jobs that ended while we watched, the latest first. */
  ended = [];
  /** The controller's clock minus ours. */
  skew = 0;
  #stop = null;
  #loading = null;
  /** Changes that came while everything was being loaded. */
  #missed = null;
  /** Was there a break in the feed since? */
  stale = false;
  #colours = new Map();
  #tenants = new Map();

  now() { return Date.now() / 1000 + this.skew; }

  emit(kind, detail) { this.dispatchEvent(new CustomEvent(kind, { detail })); }

  /** Calls with every kind of news until the signal ends it. */
  on(kinds, call, signal) {
    for (const kind of kinds) this.addEventListener(kind, (event) => call(event.detail), { signal });
  }

  /** Everything anew; who asks while it is under way gets the same. */
  load() {
    this.#loading ??= this.#load().finally(() => { this.#loading = this.#missed = null; });
    return this.#loading;
  }

  async #load() {
    this.#missed = [];
    const [board, measured] = await Promise.all([get("board"), get("measured")]);
    this.skew = board.at - Date.now() / 1000;
    this.measured = measured;
    this.nodes = board.nodes;
    this.jobs = new Map(board.jobs.map((job) => [job.id, complete(job)]));
    // What came while we loaded, unless it is in what we loaded.
    const missed = this.#missed.filter((news) => news.sequence > board.sequence);
    this.#missed = null;
    for (const news of missed) this.#changed(news);
    this.stale = false;
    this.emit("jobs", null);
    this.emit("nodes", null);
  }

  /** Stay connected: listen, and after a break look at everything anew. */
  async follow() {
    this.#stop?.abort();
    const stop = (this.#stop = new AbortController());
    for (let tries = 0; !stop.signal.aborted; tries += 1) {
      try {
        await listen((kind, news) => {
          if (kind === "hello") { tries = 0; this.emit("link", "live"); if (this.stale) this.load(); }
          if (kind === "changes") this.#changed(news);
          if (kind === "sample") this.#sampled(news);
        }, stop.signal);
      } catch (error) {
        if (stop.signal.aborted || error.code === 401) return;
      }
      this.stale = true;
      this.emit("link", "lost");
      await new Promise((done) => setTimeout(done, 1000 * PATIENCE[Math.min(tries, PATIENCE.length - 1)]));
    }
  }

  leave() {
    this.#stop?.abort();
    this.jobs.clear();
    this.nodes = [];
    this.about = this.sample = null;
  }

  #changed(news) {
    if (this.#missed) { this.#missed.push(news); return; }
    if (news.reload) { this.load(); return; }
    const touched = new Set();
    for (const job of news.jobs) { this.jobs.set(job.id, complete(job)); touched.add(job.id); }
    for (const { id, state } of news.ended) {
      const was = this.jobs.get(id);
      if (was) this.ended.unshift({ ...was, state, ended: news.at });
      this.jobs.delete(id);
      touched.add(id);
    }
    this.ended.length = Math.min(this.ended.length, 50);
    if (news.nodes) { this.nodes = news.nodes; this.emit("nodes", null); }
    if (news.did?.length) this.emit("did", news);
    this.emit("jobs", touched);
    if (news.total !== this.jobs.size) this.load();
  }

  #sampled(news) {
    const { jobs, total, ...sample } = news;
    this.sample = sample;
    this.measured = jobs;
    this.emit("sample", sample);
    if (total !== this.jobs.size) this.load();
  }

  hue(owner) { return hueOf(this.#colours, owner); }

  tenantHue(name) { return hueOf(this.#tenants, name); }
}

/** A number from 0 to 7 for a name, the same all day, different for the first eight. */
function hueOf(known, name) {
  if (!known.has(name)) {
    const taken = new Set(known.values());
    let wanted = [...name].reduce((sum, sign) => (sum * 31 + sign.codePointAt(0)) >>> 0, 7) % 8;
    for (let step = 0; step < 8 && taken.has(wanted); step += 1) wanted = (wanted + 1) % 8;
    known.set(name, wanted);
  }
  return known.get(name);
}

function complete(job) {
  job.places ??= [];
  return job;
}

export const store = new Store();

/** Node -> device -> [[job, share]], and CPU and memory by node. */
export function occupation() {
  const by = new Map(store.nodes.map((node) => [node.name, { node, devices: Array.from({ length: node.gpus }, () => []), cpu: 0, memory: 0, used: 0, measured: false, memoryUsed: 0, jobs: [] }]));
  for (const job of store.jobs.values()) {
    for (const [name, devices, cpu, memory, share] of job.places) {
      const on = by.get(name);
      if (!on) continue;
      for (const device of devices) on.devices[device]?.push([job, share]);
      on.cpu += cpu;
      on.memory += memory;
      on.jobs.push(job);
      const taken = store.measured[job.id];
      if (taken && taken[0] !== null) {
        // A job on several nodes is measured as a whole.
        on.used += taken[0] / job.places.length;
        on.memoryUsed += taken[1] / job.places.length;
        on.measured = true;
      }
    }
  }
  return by;
}
