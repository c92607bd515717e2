// The page works without this. With it, results come without a reload, files can be opened and
// dropped, a line can be jumped to, and what is shown can be copied.
"use strict";

const form = document.getElementById("check");
const text = document.getElementById("document");
const file = document.getElementById("file");
const FILE_BYTES_MAX = 32 * 1024 * 1024;

async function check(submitter) {
  const fields = new URLSearchParams(new FormData(form, submitter));
  document.body.classList.add("busy");
  try {
    const answer = await fetch(form.action, { method: "POST", body: fields });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const result = page.getElementById("result");
    if (result === null) throw new Error(`HTTP status ${answer.status}`);
    if (submitter && submitter.name === "repair") text.value = page.getElementById("document").value;
    document.getElementById("result").replaceWith(result);
    document.title = page.title;
    addCopyButtons();
    result.focus({ preventScroll: true });
    if (result.getBoundingClientRect().top > window.innerHeight / 2) result.scrollIntoView();
  } catch (error) {
    tell(`The check did not get through: ${error.message}.`);
  } finally {
    document.body.classList.remove("busy");
  }
}

function tell(message) {
  const card = document.createElement("div");
  card.className = "card problem";
  card.setAttribute("role", "alert");
  card.append(Object.assign(document.createElement("p"), { textContent: message }));
  document.getElementById("result").replaceChildren(card);
}

async function open(given) {
  if (!given) return;
  if (given.size > FILE_BYTES_MAX) {
    tell(`${given.name} is too large for this page; use "tollgate catalog validate".`);
    return;
  }
  text.value = await given.text();
  form.requestSubmit();
}

function jump(line, column) {
  const lines = text.value.split("\n");
  const before = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const end = before + lines[line - 1].length;
  text.focus();
  text.setSelectionRange(Math.min(before + column - 1, end), end);
  const height = parseFloat(getComputedStyle(text).lineHeight);
  text.scrollTop = Math.max(0, (line - 4) * height);
  text.scrollLeft = 0;
  text.scrollIntoView({ block: "nearest" });
}

function addCopyButtons() {
  if (!navigator.clipboard) return; // (only where the page is from https or from this machine)
  for (const tabs of document.querySelectorAll(".tabs")) {
    const button = Object.assign(document.createElement("button"), {
      type: "button", className: "copy", textContent: "Copy",
    });
    button.addEventListener("click", async () => {
      const shown = tabs.querySelector("input:checked + label + pre code");
      await navigator.clipboard.writeText(shown.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    tabs.append(button);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  check(event.submitter);
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-line]");
  if (button) jump(Number(button.dataset.line), Number(button.dataset.column));
});
file.addEventListener("change", () => open(file.files[0]));
file.closest("label").hidden = false;
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (!event.dataTransfer || !event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    form.classList.toggle("dropping", kind === "dragover");
    if (kind === "drop") open(event.dataTransfer.files[0]);
  });
}
addCopyButtons();
