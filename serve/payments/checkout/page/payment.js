// One payment, step by step (docs/payments.md, part H): the card becomes tokens, then the same body
// is posted with more and more hints, until there is a transaction. Asking again is always safe:
// the hint of the last step stands for one transaction, whoever asks how often.

const ANSWER_WITHIN_MS = 20_000;
const SLOW_AFTER_MS = 6_000;
const TRIES_MAX = 3;
const TRY_AGAIN_AFTER_MS = 1_000;
const STEPS_MAX = 20;
const FRAME_WITHIN_MS = 10_000;
const HOLDER_WITHIN_MS = 10 * 60_000;
const LAST_STEP = "authorize";
// Refusals that say nothing of a payment that was under way.
const UNSURE = ["PAYMENT_CHALLENGE_UNAVAILABLE", "TOKEN_INVALID"];

// The payment was not made, and will not be. `code`: the API's word.
export class Refused extends Error {
  constructor(code, seconds = 0) {
    super(code);
    this.code = code;
    this.seconds = seconds;
  }
}

// There was no answer. `isPaying`: the payment may have been made; `canAsk`: asking again helps.
export class Unreached extends Error {
  constructor(isPaying = false, canAsk = true) {
    super("no answer");
    this.isPaying = isPaying;
    this.canAsk = canAsk;
  }
}

const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

export class Payment {
  // `view`: progress(step), slow(), frame(form, isSeen) -> element, noFrame().
  constructor(page, memory, view) {
    this.page = page;
    this.memory = memory;
    this.view = view;
    this.cancelled = null;
  }

  // From a card to a transaction's id.
  async begin(card, test) {
    this.view.progress("progress.card");
    const [number, code] = await Promise.all([
      this.post("/vault", { type: "pcn", value: card.number }),
      this.post("/vault", { type: "pcsc", value: card.code }),
    ]);
    const { page } = this;
    const body = {
      integration: { key: page.key },
      amount: page.amount,
      card: { number, expiry: card.expiry, code },
      custom: { source: "payment page", ...(page.reference && { reference: page.reference }) },
      ...(page.text && { text: page.text }),
      ...(page.isTest && { test }),
      ...(page.isRecurring && { unplanned: { customer: true, merchant: true } }),
    };
    return this.goOn({ body, hints: [], isPaying: false, card: card.shown });
  }

  // From wherever an attempt is.
  async goOn(attempt) {
    this.memory.attempt = attempt;
    try {
      return await this.walk(attempt);
    } catch (error) {
      const told = attempt.isPaying ? unsure(error) : error;
      if (!(told instanceof Unreached && told.canAsk)) this.memory.attempt = null;
      throw told;
    }
  }

  async walk(attempt) {
    const until = Date.now() + HOLDER_WITHIN_MS;
    for (let steps = 0; steps < STEPS_MAX && Date.now() < until; ) {
      const reply = await this.post("/payments", { ...attempt.body, hints: attempt.hints });
      if (reply.authorizationId) return reply.authorizationId;
      const hints = await this.take(reply.challenges ?? [], attempt);
      // (asking whether the bank's app was answered is no step)
      if (hints.length > 0) steps += 1;
      attempt.hints = [...attempt.hints, ...hints];
      this.memory.attempt = attempt;
    }
    throw new Refused("late");
  }

  // The hints of the first challenge that leads anywhere.
  async take(challenges, attempt) {
    for (const challenge of challenges) {
      this.view.progress(progressOf(challenge.name));
      if (challenge.name === LAST_STEP) {
        attempt.isPaying = true;
        this.memory.attempt = attempt;
      }
      const body = { ...attempt.body, hints: attempt.hints };
      const hints = await this.takeOne(challenge, body, attempt);
      if (hints) return hints;
    }
    throw new Refused("PAYMENT_METHOD_ERROR");
  }

  async takeOne(challenge, body, attempt) {
    const isKnown = ["fetch", "background-iframe", "iframe", "redirect", "poll"].includes(challenge.type);
    if (!isKnown) return null;
    const reply = await this.post(challenge.path, body);
    switch (challenge.type) {
      case "fetch":
        return reply.hints;
      case "background-iframe":
        return this.frame(reply, false);
      case "iframe":
        return this.frame(reply, true);
      case "redirect":
        return this.leave(reply, attempt);
      case "poll":
        return this.poll(reply);
    }
    return null;
  }

  // The bank's page in a frame, which hands the hints to this page; null when it takes too long and
  // nobody is asked anything in it.
  async frame(reply, isSeen) {
    if (reply.hints && !reply.action) return reply.hints;
    const frame = this.view.frame(reply, isSeen);
    const within = reply.timeout ?? (isSeen ? HOLDER_WITHIN_MS : FRAME_WITHIN_MS);
    let hear;
    let clock;
    try {
      const heard = new Promise((resolve, reject) => {
        hear = (event) => {
          if (event.source === frame.contentWindow && Array.isArray(event.data?.hints)) {
            resolve(event.data.hints);
          }
        };
        window.addEventListener("message", hear);
        clock = setTimeout(
          () => (isSeen ? reject(new Refused("late")) : resolve(null)),
          within,
        );
        if (isSeen) this.cancelled = () => reject(new Refused("cancelled"));
      });
      return await heard;
    } finally {
      window.removeEventListener("message", hear);
      clearTimeout(clock);
      this.cancelled = null;
      this.view.noFrame(frame);
    }
  }

  // To the bank's own page; the attempt goes on when the customer is back.
  async leave(reply, attempt) {
    attempt.hints = [...attempt.hints, ...(reply.hints ?? [])];
    this.memory.attempt = attempt;
    window.location.assign(reply.url);
    return new Promise(() => {});
  }

  async poll(reply) {
    const until = Date.parse(reply.notBefore ?? "") || 0;
    await pause(Math.min(Math.max(until - Date.now(), reply.interval ?? 0, 0), ANSWER_WITHIN_MS));
    return reply.hints ?? [];
  }

  async post(path, body) {
    const slow = setTimeout(() => this.view.slow(), SLOW_AFTER_MS);
    try {
      for (let tries = 1; ; tries += 1) {
        const reply = await this.tryPost(path, body);
        if (reply) return reply;
        if (tries === TRIES_MAX) throw new Unreached();
        await pause(TRY_AGAIN_AFTER_MS * tries);
      }
    } finally {
      clearTimeout(slow);
    }
  }

  // The answer; null when there was none that says anything.
  async tryPost(path, body) {
    let response;
    let reply;
    try {
      response = await fetch(this.page.api + path, {
        method: "POST",
        headers: { "Content-Type": "application/json", "Accept": "application/json", "Accept-Version": "1" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
      if (response.status >= 500) return null;
      reply = await response.json();
    } catch {
      return null;
    }
    if (response.ok) return reply;
    if (response.status === 429) {
      throw new Refused("TOO_MANY_REQUESTS", Number(response.headers.get("Retry-After")) || 60);
    }
    throw new Refused(typeof reply?.code === "string" ? reply.code : "REQUEST_INVALID");
  }
}

// What an error means once the last step was begun.
function unsure(error) {
  if (error instanceof Unreached) return new Unreached(true);
  if (UNSURE.includes(error.code)) return new Unreached(true, false);
  return error.code === "TOO_MANY_REQUESTS" ? new Unreached(true) : error;
}

function progressOf(step) {
  if (step === LAST_STEP) return "progress.paying";
  return step.startsWith("tds-") ? "progress.bank" : "progress.card";
}
