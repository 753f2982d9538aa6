// Makes elements. Text is always text: nothing here, or anywhere else, turns a string into markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else if (name === "text") element.textContent = value;
    else if (name === "value" && "value" in element) element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An element with attributes and children; strings become text. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Other content for an element, and the keyboard's focus where it was, if that is still there. */
export function refill(element, ...children) {
  const mark = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  if (mark) element.querySelector(`[data-key="${CSS.escape(mark)}"]`)?.focus({ preventScroll: true });
}

/** Calls at most once in so many milliseconds (or what `pause` says then), and once more at the end if something came. */
export function throttled(pause, call) {
  let timer = null;
  let last = -Infinity;
  const run = () => { timer = null; last = performance.now(); call(); };
  const ask = () => { if (timer === null) timer = setTimeout(run, Math.max(0, last + (typeof pause === "function" ? pause() : pause) - performance.now())); };
  ask.cancel = () => { clearTimeout(timer); timer = null; };
  return ask;
}

/** A colour of the style sheet as the browser sees it now: canvases know no variables. */
export function colour(name) {
  const probe = h("i", { style: { color: `var(${name})`, display: "none" } });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
