// Only in a page that is served: what the evidence takes in is listed, and the page is judged anew.
const told = document.getElementById("told");
const state = document.getElementById("live");
let last = document.body.dataset.live;
let source = null;
let asked = false;
let busy = false;

// What was judged before is no verdict of now: the page no longer shows it as one.
function notLive(words) {
  state.textContent = words;
  document.body.className = "warn";
  document.querySelector("h1").textContent = "not live";
  document.querySelector(".sum").textContent = `${words} What stands below was judged before.`;
  document.title = `not live: ${words}`;
}

function put(page) {
  const name = (one) => `${one.closest("section, tr").textContent.slice(0, 80)} ${one.firstChild.textContent}`;
  const details = () => [...document.querySelectorAll("main details")];
  const wasOpen = new Set(details().filter((one) => one.open).map(name));
  const form = document.querySelector("form.find");
  const said = form ? [form.words.value, form.agent.value, form.kind.value, form.bad.checked] : null;
  for (const part of ["header", "nav", "main"]) {
    const now = page.querySelector(`body > ${part}`);
    if (now) document.querySelector(`body > ${part}`)?.replaceWith(document.importNode(now, true));
  }
  document.body.className = page.body.className;
  document.title = page.title;
  for (const one of details()) if (wasOpen.has(name(one))) one.open = true;
  begin();
  const after = document.querySelector("form.find");
  if (after && said?.some(Boolean)) {
    [after.words.value, after.agent.value, after.kind.value, after.bad.checked] = said;
    after.dispatchEvent(new Event("input"));
  }
}

async function judgeAgain() {
  asked = true;
  if (busy) return;
  busy = true;
  while (asked) {
    asked = false;
    state.textContent = "Judging again ...";
    try {
      const answer = await fetch(location.pathname, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (answer.ok && page.getElementById("main")) {
        put(page);
        state.textContent = "Live";
      } else {
        notLive(page.body.textContent.trim());
        setTimeout(() => { if (source && state.textContent !== "Live") judgeAgain(); }, 5000);
      }
    } catch (error) {
      notLive("The server does not answer.");
    }
  }
  busy = false;
}

function follow() {
  const mine = new EventSource(`entries?since=${last}`);
  source = mine;
  source.addEventListener("open", () => { if (state.textContent !== "Live") judgeAgain(); });
  source.addEventListener("error", () => {
    notLive("The server does not answer.");
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => { if (source === mine) follow(); }, 5000);
  });
  source.addEventListener("again", (event) => {
    last = event.lastEventId;
    judgeAgain();
  });
  source.addEventListener("entries", (event) => {
    last = event.lastEventId;
    for (const entry of JSON.parse(event.data).entries) {
      const item = document.createElement("li");
      item.textContent = entry;
      told.prepend(item);
    }
    while (told.children.length > 50) told.lastChild.remove();
    judgeAgain();
  });
}

// A browser keeps few streams open at once: a tab that nobody sees needs none.
document.addEventListener("visibilitychange", () => {
  source?.close();
  source = null;
  if (document.hidden) state.textContent = "Not live while it is hidden";
  else follow();
});
if (!document.hidden) follow();
