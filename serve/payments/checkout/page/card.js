// Card fields: what is typed is grouped, and checked. Nothing here leaves the page.

const SCHEMES = [
  { name: "Visa", begins: /^4/, lengths: [13, 16, 19], code: 3 },
  { name: "Mastercard", begins: /^(5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, lengths: [16], code: 3 },
  { name: "American Express", begins: /^3[47]/, lengths: [15], code: 4 },
  { name: "Maestro", begins: /^(50|5[6-9]|6[0-9])/, lengths: [12, 13, 14, 15, 16, 17, 18, 19], code: 3 },
];
const UNKNOWN = { name: "", lengths: [12, 13, 14, 15, 16, 17, 18, 19], code: 3 };
const DIGITS_MAX = 19;
const YEARS_AHEAD_MAX = 50;

export const digitsOf = (text) => text.replace(/\D/g, "");

export function schemeOf(digits) {
  return SCHEMES.find((scheme) => scheme.begins.test(digits)) ?? UNKNOWN;
}

export function grouped(digits) {
  const groups = schemeOf(digits).code === 4 ? /^(\d{1,4})(\d{1,6})?(\d{1,9})?/ : null;
  const parts = groups ? (digits.match(groups)?.slice(1) ?? []) : (digits.match(/\d{1,4}/g) ?? []);
  return parts.filter(Boolean).join(" ");
}

// The last digit of a real card's number checks the others; those of test cards do not.
function isChecked(digits) {
  let sum = 0;
  for (let place = 0; place < digits.length; place += 1) {
    const digit = Number(digits[digits.length - 1 - place]);
    sum += place % 2 ? (digit > 4 ? 2 * digit - 9 : 2 * digit) : digit;
  }
  return sum % 10 === 0;
}

export function numberProblem(text, isTest) {
  const digits = digitsOf(text);
  if (!digits) return "field.number_missing";
  const { lengths } = schemeOf(digits);
  if (digits.length < lengths[0]) return "field.number_short";
  if (!lengths.includes(digits.length)) return "field.number_wrong";
  return isTest || isChecked(digits) ? "" : "field.number_wrong";
}

// "8/66", "08 / 2066", "0866": month and year; null when it is neither.
export function expiryOf(text) {
  const found = /^\s*(\d{1,2})\s*[/.\-\s]\s*(\d{4}|\d{2})\s*$/.exec(text) ?? /^\s*(\d{2})(\d{4}|\d{2})\s*$/.exec(text);
  if (!found) return null;
  const month = Number(found[1]);
  const year = Number(found[2]) + (found[2].length === 2 ? 2000 : 0);
  const thisYear = new Date().getFullYear();
  return month >= 1 && month <= 12 && year <= thisYear + YEARS_AHEAD_MAX && year >= 2000
    ? { month, year }
    : null;
}

export function expiryProblem(text) {
  if (!text.trim()) return "field.expiry_missing";
  const expiry = expiryOf(text);
  if (!expiry) return "field.expiry_malformed";
  const now = new Date();
  const isPast = expiry.year * 12 + expiry.month < now.getFullYear() * 12 + now.getMonth() + 1;
  return isPast ? "field.expiry_past" : "";
}

export function codeProblem(text, number) {
  const digits = digitsOf(text);
  if (!digits) return "field.code_missing";
  return digits.length === schemeOf(digitsOf(number)).code ? "" : "field.code_short";
}

// Keeps the caret behind the digit that it was behind.
function setValue(input, value) {
  if (input.value === value) return;
  const caret = input.selectionStart ?? input.value.length;
  const isAtEnd = caret === input.value.length;
  let before = digitsOf(input.value.slice(0, caret)).length;
  input.value = value;
  let place = 0;
  while (before > 0 && place < value.length) {
    if (/\d/.test(value[place])) before -= 1;
    place += 1;
  }
  const end = isAtEnd ? value.length : place;
  if (document.activeElement === input) input.setSelectionRange(end, end);
}

export function groupNumber(input) {
  setValue(input, grouped(digitsOf(input.value).slice(0, DIGITS_MAX)));
}

export function groupExpiry(input, isDeleting) {
  if (isDeleting) return;
  const parted = /^\s*(\d{1,2})\s*[/.\-]\s*(\d{0,4})\s*$/.exec(input.value);
  const digits = digitsOf(input.value);
  const month = parted ? parted[1].padStart(2, "0") : /^[2-9]/.test(digits) ? `0${digits[0]}` : digits.slice(0, 2);
  const year = parted ? parted[2] : digits.slice(month.startsWith("0") && /^[2-9]/.test(digits) ? 1 : 2, 6);
  setValue(input, month.length < 2 ? month : `${month} / ${year}`);
}
