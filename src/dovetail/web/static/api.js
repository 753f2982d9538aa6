// Talks to the controller. The token lives in this tab alone and goes along as a header.

const KEY = "dovetail-token";
const ROOT = new URL("v1/", document.baseURI);

/** What the controller said in one sentence. */
export class Refused extends Error {
  constructor(code, sentence) {
    super(sentence);
    this.code = code;
  }
}

export const session = {
  get token() { return sessionStorage.getItem(KEY) ?? ""; },
  set token(text) { text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY); },
  /** Called when the token counts no more. */
  expired: () => {},
};

async function request(path, options = {}) {
  let answer;
  const headers = { Authorization: `Bearer ${session.token}`, ...options.headers };
  try {
    answer = await fetch(new URL(path, ROOT), { cache: "no-store", ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The controller does not answer.");
  }
  if (answer.ok) return answer;
  let sentence = `The controller answered ${answer.status}.`;
  try { sentence = (await answer.json()).error ?? sentence; } catch { /* no sentence came along */ }
  if (answer.status === 401) session.expired(sentence);
  throw new Refused(answer.status, sentence);
}

const query = (values) => {
  const given = Object.entries(values ?? {}).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
};

export const get = async (path, values, options) => (await request(path + query(values), options)).json();

export async function post(path, value) {
  const options = { method: "POST" };
  if (value !== undefined) {
    options.body = JSON.stringify(value);
    options.headers = { "Content-Type": "application/json" };
  }
  return (await request(path, options)).json();
}

let known = null;
/** Does this controller have such a verb? What it cannot answer is not asked. */
export async function answers(path) {
  known ??= get("openapi.json").then((schema) => new Set(Object.keys(schema.paths)));
  return (await known).has(`/v1/${path}`);
}

/** Server-sent events by hand: the browser's own reader can send no token. */
export async function listen(heard, signal) {
  const answer = await request("events", { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    for (const message of messages) {
      const found = /^event: (\w+)\ndata: (.*)$/s.exec(message);
      if (found) heard(found[1], JSON.parse(found[2]));
    }
  }
}
