// The page: from the form to a payment and its receipt, and the way on from every refusal.

import * as card from "./card.js";
import { Memory } from "./memory.js";
import * as notices from "./notices.js";
import { Payment, Refused, Unreached } from "./payment.js";

const { part } = notices;
const page = JSON.parse(part("pay").dataset.page);
const memory = new Memory(window.location.search);
const RETURN_AFTER_MS = 1_500;
const text = (name, values) => notices.textOf(page, name, values);

// The API's words, and a few of our own: what is told, and the field it is about.
const TOLD = {
  PAYMENT_CARD_NUMBER_INVALID: [page.isTest ? "refused.test_card" : "refused.number", "number"],
  PAYMENT_CARD_SCHEME_UNKNOWN: ["refused.scheme", "number"],
  PAYMENT_CARD_SCHEME_UNSUPPORTED: ["refused.scheme", "number"],
  PAYMENT_CARD_SECURITY_CODE_INVALID: ["refused.code", "code"],
  PAYMENT_CARD_EXPIRED: ["refused.expired", "expiry"],
  PAYMENT_CARD_DISABLED: ["refused.blocked", "number"],
  PAYMENT_CARD_LOST: ["refused.blocked", "number"],
  PAYMENT_AMOUNT_LIMIT: ["refused.limit", "number"],
  PAYMENT_INSUFFICIENT_FUNDS: ["refused.funds", "number"],
  PAYMENT_REJECTED_BY_ISSUER: ["refused.bank", "number"],
  PAYMENT_REJECTED: ["refused.rejected", "number"],
  PAYMENT_METHOD_ERROR: ["refused.failed", ""],
  TDSECURE_FAILED: ["refused.tds", ""],
  TDSECURE_REQUIRED: ["refused.tds_required", "number"],
  PAYMENT_CHALLENGE_UNAVAILABLE: ["refused.too_late", ""],
  TOKEN_INVALID: ["refused.too_late", ""],
  offline: ["refused.offline", ""],
  late: ["refused.too_late", ""],
  cancelled: ["refused.cancelled", ""],
  PAYMENT_INTEGRATION_KEY_UNKNOWN: ["refused.shop", ""],
  PAYMENT_INTEGRATION_DISABLED: ["refused.shop", ""],
  PAYMENT_RECEIVER_BLOCKED: ["refused.shop", ""],
  TEST_MODE_MIXED: ["refused.mode", ""],
  TOO_MANY_REQUESTS: ["refused.too_often", ""],
};
const OURS = ["refused.ours", ""];

const fields = { number: part("number"), expiry: part("expiry"), code: part("code") };
let isBusy = false;

const payment = new Payment(page, memory, {
  progress(name) {
    notices.show("progress");
    part("progress-text").textContent = text(name);
    part("progress-slow").textContent = "";
    notices.say(text(name));
  },
  slow() {
    part("progress-slow").textContent = text("progress.slow");
    notices.say(text("progress.slow"));
  },
  frame: notices.openFrame,
  noFrame(frame) {
    frame.remove();
  },
});

function problemOf(name) {
  const { number, expiry, code } = fields;
  const problem = {
    number: () => card.numberProblem(number.value, page.isTest),
    expiry: () => card.expiryProblem(expiry.value),
    code: () => card.codeProblem(code.value, number.value),
  }[name]();
  const digits = card.schemeOf(card.digitsOf(number.value)).code;
  return problem && text(problem, { digits, example: "08 / 29" });
}

function check(name) {
  const problem = problemOf(name);
  notices.setProblem(fields[name], problem);
  return !problem;
}

function shownCard() {
  const digits = card.digitsOf(fields.number.value);
  const scheme = card.schemeOf(digits).name || text("done.card");
  return { scheme, digits: digits.slice(-4) };
}

// Does one thing at a time, in one window at a time.
async function alone(work) {
  if (isBusy) return;
  isBusy = true;
  try {
    const isDone = await memory.alone(() => run(work));
    if (!isDone) {
      notices.show("card");
      const heading = text("elsewhere.heading");
      notices.showNotice({ heading, text: text("elsewhere.text"), tone: "calm" });
    }
  } finally {
    isBusy = false;
  }
}

async function run(work) {
  notices.hideNotice();
  try {
    const transaction = await work();
    const paidBy = memory.attempt?.card ?? { scheme: "", digits: "" };
    const receipt = { transaction, at: Date.now(), card: paidBy };
    memory.receipt = receipt;
    memory.attempt = null;
    part("card").reset();
    finish(receipt, true);
  } catch (error) {
    if (error instanceof Unreached) tellUnreached(error);
    else if (error instanceof Refused) tellRefused(error);
    else throw error;
  }
}

function tellRefused({ code, seconds }) {
  const [name, field] = TOLD[code] ?? OURS;
  notices.show("card");
  if (code !== "cancelled" && code !== "TOO_MANY_REQUESTS") fields.code.value = "";
  const told = text(name, { seconds });
  if (field) notices.setProblem(fields[field], told);
  notices.showNotice({
    heading: text("refused.heading"),
    text: told,
    more: text("refused.not_charged"),
  });
}

// Before the last step nothing can have been paid: the form is there again. After it only the same
// attempt can tell.
function tellUnreached({ isPaying, canAsk }) {
  if (!isPaying) {
    memory.attempt = null;
    tellRefused({ code: "offline" });
    return;
  }
  notices.show(canAsk ? "" : "card");
  notices.showNotice({
    heading: text("unknown.heading"),
    text: text(canAsk ? "unknown.text" : "unknown.lost"),
    buttons: canAsk ? [[text("unknown.again"), resume]] : [],
  });
}

function resume() {
  const { attempt } = memory;
  if (!attempt) return;
  alone(() => {
    notices.show("progress");
    part("progress-text").textContent = text("progress.resuming");
    notices.say(text("progress.resuming"));
    return payment.goOn(attempt);
  });
}

function returnUrl(transaction) {
  const url = new URL(page.redirect);
  const kept = url.search.slice(1).split("&").filter((each) => each && each.split("=")[0] !== "transactionId");
  url.search = [...kept, `transactionId=${encodeURIComponent(transaction)}`].join("&");
  return url.href;
}

function finish(receipt, isNew) {
  const again = page.another
    ? [text("till.another"), page.another, "plain"]
    : [text("done.again"), payAgain, "plain"];
  if (!page.redirect) {
    notices.showReceipt(page, receipt, [[text("done.print"), () => window.print(), "plain"], again]);
    return;
  }
  const url = returnUrl(receipt.transaction);
  const buttons = [[text("done.return"), url, "primary"]];
  notices.showReceipt(page, receipt, isNew ? buttons : [...buttons, again]);
  if (isNew) {
    part("done-text").textContent = text("done.returning");
    setTimeout(() => window.location.replace(url), RETURN_AFTER_MS);
  }
}

function payAgain() {
  memory.receipt = null;
  start();
  fields.number.focus();
}

function tellPaidElsewhere() {
  if (isBusy || memory.receipt) return;
  notices.showNotice({
    heading: text("elsewhere.paid_heading"),
    text: text("done.text"),
    tone: "calm",
    buttons: [[text("elsewhere.here"), () => { notices.hideNotice(); fields.number.focus(); }]],
  });
}

function start() {
  const { receipt, attempt } = memory;
  notices.hideNotice();
  if (receipt) return finish(receipt, false);
  notices.show("card");
  if (attempt) return resume();
  if (memory.paidElsewhere && !page.another) tellPaidElsewhere();
}

part("card").addEventListener("submit", (event) => {
  event.preventDefault();
  const wrong = Object.keys(fields).filter((name) => !check(name));
  if (wrong.length > 0) {
    fields[wrong[0]].focus();
    return;
  }
  const paid = {
    number: card.digitsOf(fields.number.value),
    expiry: card.expiryOf(fields.expiry.value),
    code: card.digitsOf(fields.code.value),
    shown: shownCard(),
  };
  const test = page.isTest ? JSON.parse(part("outcome").value) : null;
  alone(() => payment.begin(paid, test));
});

fields.number.addEventListener("input", () => {
  card.groupNumber(fields.number);
  const scheme = card.schemeOf(card.digitsOf(fields.number.value));
  part("scheme").textContent = scheme.name;
  part("code-hint").textContent = text(scheme.code === 4 ? "form.code_hint_front" : "form.code_hint");
});
fields.expiry.addEventListener("input", (event) => {
  card.groupExpiry(fields.expiry, event.inputType?.startsWith("delete"));
});
fields.code.addEventListener("input", () => {
  fields.code.value = card.digitsOf(fields.code.value);
});
for (const [name, field] of Object.entries(fields)) {
  // What is wrong is said when the field is left, and taken back as soon as it is right.
  field.addEventListener("change", () => field.value && check(name));
  field.addEventListener("input", () => {
    if (field.hasAttribute("aria-invalid") && !problemOf(name)) notices.setProblem(field, "");
  });
}
part("cancel").addEventListener("click", () => payment.cancelled?.());
part("fill")?.addEventListener("click", () => {
  const nextYear = new Date().getFullYear() + 1;
  const filled = { number: "4100000000000000", expiry: `12/${nextYear}`, code: "123" };
  for (const [name, value] of Object.entries(filled)) {
    fields[name].value = value;
    fields[name].dispatchEvent(new Event("input"));
    notices.setProblem(fields[name], "");
  }
  part("submit").focus();
});
memory.whenPaidElsewhere(tellPaidElsewhere);
// (the browser's own memory of the page knows nothing of what has happened since)
window.addEventListener("pageshow", (event) => event.persisted && window.location.reload());
start();
