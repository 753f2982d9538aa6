// Before anything is drawn: the theme somebody chose, or the system's.
"use strict";
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("dovetail-theme"); } catch { /* storage is closed to us */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
