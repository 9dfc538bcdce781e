"use strict";
// Filters the log by agent, kind and words, and opens what a link leads to. The page is whole without it.
(() => {
  const form = document.querySelector("form.find");
  const open = () => {
    let at = document.getElementById(location.hash.slice(1));
    for (; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  addEventListener("hashchange", open);
  open();
  if (!form) return;
  form.hidden = false;
  const rows = [...document.querySelectorAll(".log tbody tr")];
  const kinds = [...new Set(rows.map((row) => row.cells[3].textContent).filter(Boolean))].sort();
  for (const kind of kinds) form.kind.add(new Option(kind));
  const said = form.querySelector("output");
  const apply = () => {
    const agent = form.agent.value, kind = form.kind.value, words = form.words.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = (!agent || row.dataset.l === agent)
        && (!kind || row.cells[3].textContent === kind)
        && (!form.bad.checked || row.classList.contains("bad"))
        && (!words || row.textContent.toLowerCase().includes(words));
      row.hidden = !fits;
      shown += fits;
    }
    for (const day of document.querySelectorAll(".day")) {
      day.hidden = !day.querySelector("tbody tr:not([hidden])");
    }
    said.textContent = shown === rows.length ? "" : `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} entries`;
  };
  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
})();
