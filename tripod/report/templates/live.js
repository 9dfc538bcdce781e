// Only in a page that is served: what the ledger takes in is listed, and the page is judged anew.
const told = document.getElementById("told");
const state = document.getElementById("live");
let asked = false;
let busy = false;

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
        for (const part of ["header", "nav", "main"]) {
          document.querySelector(`body > ${part}`)
            ?.replaceWith(document.importNode(page.querySelector(`body > ${part}`), true));
        }
        document.body.className = page.body.className;
        document.title = page.title;
        begin();
        state.textContent = "Live";
      } else {
        state.textContent = page.body.textContent.trim();
      }
    } catch (error) {
      state.textContent = "The server does not answer";
    }
  }
  busy = false;
}

const source = new EventSource("entries?since=" + document.body.dataset.live);
source.addEventListener("open", () => { state.textContent = "Live"; });
source.addEventListener("error", () => { state.textContent = "The server does not answer"; });
source.addEventListener("again", judgeAgain);
source.addEventListener("entries", (event) => {
  for (const entry of JSON.parse(event.data).entries) {
    const item = document.createElement("li");
    item.textContent = entry;
    told.prepend(item);
  }
  while (told.children.length > 50) told.lastChild.remove();
  judgeAgain();
});
