/**
 * The grammar of JSON (RFC 8259) written in UTF-8 (RFC 3629) as one table: a state and the next byte give the next state.
 * A table cannot know which bracket is open, or which member is being read. For these cases it names a step, which the reader of the table
 * executes. One entry per state and byte, instead of per class of bytes, saves a look-up for each byte of a body.
 */
export const GRAMMAR = new Uint8Array(64 << 8);

const REASONS: string[] = [];

/** Numbers from here on are steps. Smaller numbers are states. */
export const FIRST_STEP = 64;
export const REFUSE = 64;
export const OPEN_OBJECT = 65;
export const CLOSE_OBJECT = 66;
export const OPEN_ARRAY = 67;
export const CLOSE_ARRAY = 68;
export const COMMA = 69;
export const OPEN_KEY = 70;
export const OPEN_TEXT = 71;
export const CLOSE_STRING = 72;
export const WATCHED = 73;

/** Before the top-level object. A request body must be an object. */
export const START = state("expected a JSON object");
export const END = state("expected nothing after the object");
export const FIRST_KEY = state("expected a member name or the end of the object");
export const KEY = state("expected a member name");
export const COLON = state("expected a colon");
export const VALUE = state("expected a value");
export const FIRST_VALUE = state("expected a value or the end of the array");
/** Like COLON and VALUE, but the first byte of the value is reported as the step WATCHED. */
export const WATCHED_COLON = state("expected a colon");
export const WATCHED_VALUE = state("expected a value");
export const AFTER_VALUE = state("expected a comma or the matching bracket");
export const STRING = state("control character in a string");

const ESCAPE = state("unknown escape in a string");
const HEX_4 = state("expected four hexadecimal digits");
const HEX_3 = state("expected four hexadecimal digits");
const HEX_2 = state("expected four hexadecimal digits");
const HEX_1 = state("expected four hexadecimal digits");
const TAIL_3 = state("invalid UTF-8");
const TAIL_2 = state("invalid UTF-8");
const TAIL_1 = state("invalid UTF-8");
const AFTER_E0 = state("invalid UTF-8");
const AFTER_ED = state("invalid UTF-8");
const AFTER_F0 = state("invalid UTF-8");
const AFTER_F4 = state("invalid UTF-8");
const MINUS = state("expected a digit");
const ZERO = state("expected the end of a number");
const INTEGER = state("expected the end of a number");
const POINT = state("expected a digit");
const FRACTION = state("expected the end of a number");
const EXPONENT = state("expected an exponent");
const EXPONENT_SIGN = state("expected a digit");
const EXPONENT_DIGITS = state("expected the end of a number");

const WHITE_SPACE = " \t\n\r";
const DIGITS = "0123456789";

GRAMMAR.fill(REFUSE);

for (const from of [START, END, FIRST_KEY, KEY, COLON, VALUE, FIRST_VALUE, WATCHED_COLON, WATCHED_VALUE, AFTER_VALUE]) {
  on(from, WHITE_SPACE, from);
}
on(START, "{", OPEN_OBJECT);
on(FIRST_KEY, "}", CLOSE_OBJECT);
for (const from of [FIRST_KEY, KEY]) on(from, '"', OPEN_KEY);
on(COLON, ":", VALUE);
on(WATCHED_COLON, ":", WATCHED_VALUE);
on(WATCHED_VALUE, `{["-${DIGITS}tfn`, WATCHED);
on(FIRST_VALUE, "]", CLOSE_ARRAY);
for (const from of [VALUE, FIRST_VALUE]) {
  on(from, "{", OPEN_OBJECT);
  on(from, "[", OPEN_ARRAY);
  on(from, '"', OPEN_TEXT);
  on(from, "-", MINUS);
  on(from, "0", ZERO);
  on(from, "123456789", INTEGER);
  for (const literal of ["true", "false", "null"]) spell(from, literal);
}

// A number ends at the byte after it, so its last states accept the bytes that may follow any value.
for (const from of [AFTER_VALUE, ZERO, INTEGER, FRACTION, EXPONENT_DIGITS]) {
  on(from, WHITE_SPACE, AFTER_VALUE);
  on(from, ",", COMMA);
  on(from, "}", CLOSE_OBJECT);
  on(from, "]", CLOSE_ARRAY);
}
on(MINUS, "0", ZERO);
on(MINUS, "123456789", INTEGER);
on(INTEGER, DIGITS, INTEGER);
for (const from of [ZERO, INTEGER]) on(from, ".", POINT);
for (const from of [ZERO, INTEGER, FRACTION]) on(from, "eE", EXPONENT);
for (const from of [POINT, FRACTION]) on(from, DIGITS, FRACTION);
on(EXPONENT, "+-", EXPONENT_SIGN);
for (const from of [EXPONENT, EXPONENT_SIGN, EXPONENT_DIGITS]) on(from, DIGITS, EXPONENT_DIGITS);

onBytes(STRING, 0x20, 0x7f, STRING);
on(STRING, '"', CLOSE_STRING);
on(STRING, "\\", ESCAPE);
on(ESCAPE, '"\\/bfnrt', STRING);
on(ESCAPE, "u", HEX_4);
// Any four digits: a lone surrogate is valid JSON when it is written as an escape.
const HEX = [HEX_4, HEX_3, HEX_2, HEX_1, STRING];
for (const [index, from] of HEX.slice(0, -1).entries()) on(from, `${DIGITS}abcdefABCDEF`, HEX[index + 1] as number);

// RFC 3629 section 4: no overlong forms (after C0, C1, E0, F0), no surrogates (after ED), nothing above U+10FFFF (after F4).
onBytes(STRING, 0xc2, 0xdf, TAIL_1);
onBytes(STRING, 0xe0, 0xe0, AFTER_E0);
onBytes(STRING, 0xe1, 0xef, TAIL_2);
onBytes(STRING, 0xed, 0xed, AFTER_ED);
onBytes(STRING, 0xf0, 0xf0, AFTER_F0);
onBytes(STRING, 0xf1, 0xf3, TAIL_3);
onBytes(STRING, 0xf4, 0xf4, AFTER_F4);
onBytes(AFTER_E0, 0xa0, 0xbf, TAIL_1);
onBytes(AFTER_ED, 0x80, 0x9f, TAIL_1);
onBytes(AFTER_F0, 0x90, 0xbf, TAIL_2);
onBytes(AFTER_F4, 0x80, 0x8f, TAIL_2);
onBytes(TAIL_3, 0x80, 0xbf, TAIL_2);
onBytes(TAIL_2, 0x80, 0xbf, TAIL_1);
onBytes(TAIL_1, 0x80, 0xbf, STRING);

/** Why a byte is invalid in a state. The message contains only the grammar, never the text. */
export function reasonFor(state: number, byte: number): string {
  if (state === START && byte === 0xef) return "a byte order mark is not part of JSON";
  if (state === STRING && byte >= 0x80) return "invalid UTF-8";
  return REASONS[state] as string;
}

function state(reason: string): number {
  return REASONS.push(reason) - 1;
}

function on(from: number, characters: string, to: number): void {
  for (const character of characters) onBytes(from, character.charCodeAt(0), character.charCodeAt(0), to);
}

function onBytes(from: number, first: number, last: number, to: number): void {
  GRAMMAR.fill(to, (from << 8) | first, ((from << 8) | last) + 1);
}

/** The letters of a literal, with one state for each remaining letter. */
function spell(from: number, literal: string): void {
  let at = from;
  for (const [index, letter] of [...literal].entries()) {
    const next = index === literal.length - 1 ? AFTER_VALUE : state("unknown literal");
    on(at, letter, next);
    at = next;
  }
}
