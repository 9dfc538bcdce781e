
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
      const main = page.getElementById("main");
      if (answer.ok && main) {
        document.getElementById("main").replaceWith(document.importNode(main, true));
        document.body.className = page.body.className;
        document.title = page.title;
        document.dispatchEvent(new Event("replaced"));
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
