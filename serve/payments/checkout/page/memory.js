// What the browser remembers of this link: a payment under way survives a reload, one that was made
// is not made again by accident. Tokens and hints alone are kept, never a number or a code, and
// only in this window; other windows learn no more than that there was a payment.

const PAID_FOR_MS = 30 * 60_000;

function read(store, name) {
  try {
    return JSON.parse(store().getItem(name));
  } catch {
    return null;
  }
}

function write(store, name, value) {
  try {
    if (value === null) store().removeItem(name);
    else store().setItem(name, JSON.stringify(value));
  } catch {
    // (a browser that keeps nothing loses the payment under way with a reload, no more)
  }
}

const ofWindow = () => window.sessionStorage;
const ofBrowser = () => window.localStorage;

export class Memory {
  constructor(link) {
    this.attemptName = `tollgate attempt ${link}`;
    this.receiptName = `tollgate receipt ${link}`;
    this.paidName = `tollgate paid ${link}`;
  }

  get attempt() {
    return read(ofWindow, this.attemptName);
  }

  set attempt(value) {
    write(ofWindow, this.attemptName, value);
  }

  get receipt() {
    return read(ofWindow, this.receiptName);
  }

  set receipt(value) {
    write(ofWindow, this.receiptName, value);
    if (value) write(ofBrowser, this.paidName, { at: value.at });
  }

  // When another window has paid this link lately; null when none has.
  get paidElsewhere() {
    const paid = read(ofBrowser, this.paidName);
    return paid && Date.now() - paid.at < PAID_FOR_MS ? paid : null;
  }

  whenPaidElsewhere(tell) {
    window.addEventListener("storage", (event) => {
      if (event.key === this.paidName && event.newValue) tell(JSON.parse(event.newValue));
    });
  }

  // Does the work while no other window does; false when one does.
  async alone(work) {
    if (!navigator.locks) {
      await work();
      return true;
    }
    return navigator.locks.request(this.attemptName, { ifAvailable: true }, async (lock) => {
      if (lock) await work();
      return Boolean(lock);
    });
  }
}
