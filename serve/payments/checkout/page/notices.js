// What the customer sees: the form, progress, the bank's frame, notices, the receipt. One of the four
// parts is there at a time, and a notice above the form.

const PARTS = ["card", "progress", "challenge", "done"];
const FRAME_HEIGHT_MIN = 320;

export const part = (id) => document.getElementById(id);

export function textOf(page, name, values = {}) {
  let text = page.texts[name] ?? name;
  for (const [key, value] of Object.entries(values)) text = text.replaceAll(`{${key}}`, String(value));
  return text;
}

export function show(id) {
  for (const each of PARTS) part(each).hidden = each !== id;
  part("ways").hidden = id === "progress" || id === "done";
}

// To those who hear the page: the same words again would not be said.
export function say(text) {
  part("said").textContent = text;
}

export function hideNotice() {
  part("notice").hidden = true;
}

// `tone`: "bad" or "calm". `buttons`: pairs of a text and what it does.
export function showNotice({ heading, text, more = "", tone = "bad", buttons = [] }) {
  const notice = part("notice");
  part("notice-heading").textContent = heading;
  part("notice-text").textContent = text;
  part("notice-more").textContent = more;
  part("notice-more").hidden = !more;
  part("notice-buttons").replaceChildren(...buttons.map(([label, act]) => button(label, act)));
  part("notice-buttons").hidden = buttons.length === 0;
  notice.className = `notice ${tone}`;
  notice.hidden = false;
  notice.focus();
  notice.scrollIntoView({ block: "nearest" });
}

export function button(label, act, kind = "plain") {
  const made = document.createElement(typeof act === "string" ? "a" : "button");
  made.className = kind;
  made.textContent = label;
  if (typeof act === "string") made.href = act;
  else {
    made.type = "button";
    made.addEventListener("click", act);
  }
  return made;
}

// A problem of a field stands below it, and is read with it.
export function setProblem(input, text) {
  const problem = part(`${input.id}-problem`);
  problem.textContent = text;
  problem.hidden = !text;
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

// The bank's page: a form that is posted into a frame of ours.
export function openFrame(reply, isSeen) {
  const holder = part("challenge-frame");
  const frame = document.createElement("iframe");
  frame.name = `bank-${Date.now()}`;
  frame.title = holder.dataset.title;
  if (isSeen) {
    frame.height = String(Math.max(Number(reply.height) || 0, FRAME_HEIGHT_MIN));
    frame.className = "bank";
  } else {
    frame.className = "unseen";
    frame.tabIndex = -1;
    frame.setAttribute("aria-hidden", "true");
  }
  (isSeen ? holder : document.body).append(frame);
  const form = document.createElement("form");
  form.method = reply.method ?? "POST";
  form.action = reply.action;
  form.target = frame.name;
  form.hidden = true;
  for (const [name, value] of Object.entries(reply.fields ?? {})) {
    const field = document.createElement("input");
    field.type = "hidden";
    field.name = name;
    field.value = value;
    form.append(field);
  }
  document.body.append(form);
  form.submit();
  form.remove();
  if (isSeen) {
    show("challenge");
    part("challenge-heading").focus();
  }
  return frame;
}

export function showReceipt(page, receipt, buttons) {
  show("done");
  hideNotice();
  part("done-transaction").textContent = receipt.transaction;
  part("done-card").textContent = receipt.card.digits ? textOf(page, "done.card_ending", receipt.card) : "";
  part("done-card-row").hidden = !receipt.card.digits;
  const format = new Intl.DateTimeFormat(page.language, { dateStyle: "long", timeStyle: "short" });
  part("done-date").textContent = format.format(new Date(receipt.at));
  part("done-buttons").replaceChildren(...buttons.map(([label, act, kind]) => button(label, act, kind)));
  part("done-heading").focus();
}
