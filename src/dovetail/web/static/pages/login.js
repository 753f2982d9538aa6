// Lets people in who bring a token.

import { h } from "../dom.js";
import { capital } from "../format.js";

/** The form; `enter` is called with a token and may refuse. */
export function form(sentence, enter) {
  const said = h("p", { class: "said", role: "alert", text: capital(sentence) });
  const token = h("input", { id: "token", name: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, placeholder: "dt_…" });
  const button = h("button", { class: "primary", text: "Sign in" });
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    said.textContent = "";
    try { await enter(token.value.trim()); } catch (error) { said.textContent = capital(error.message); token.select(); }
    button.disabled = false;
  };
  return h("form", { class: "login card", onsubmit: submit },
    h("img", { src: "static/mark.svg", alt: "", width: 40, height: 40 }),
    h("h1", { text: "Dovetail" }),
    h("p", { class: "quiet", text: "Sign in with a token. It stays in this tab and is forgotten when you close it." }),
    h("label", { for: "token", text: "Token" }), token, said, button,
    h("p", { class: "quiet" }, "Make one where the controller runs: ", h("code", { text: "dovetail token make" })));
}
