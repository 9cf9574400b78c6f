import { IMPURE, impureSentence } from "./impure-functions.ts";

/**
 * The code around JSONata inside the sandbox, loaded after JSONata itself. It gives a function from an expression and the JSON of
 * its input to the JSON of the result. Its errors have JSONata's message without values of the input, and the position as
 * `stack`.
 */
export const EVALUATOR = `(() => {
  "use strict";
  const limits = { stack: 2000, sequence: 1000000 };
  const impure = ${JSON.stringify(Object.fromEntries([...IMPURE].map((name) => [name, impureSentence(name)])))};
  const refuse = (name) => () => { throw new Error(impure[name]); };

  // Times without a date would take theirs from now, and so differ from one day to the next.
  const RealDate = Date;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, given, self) => Reflect.construct(target, given.length === 0 ? [0] : given, self),
  });
  Math.random = refuse("random");

  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  globalThis.window = {
    btoa(text) {
      let coded = "";
      for (let at = 0; at < text.length; at += 3) {
        const [a, b, c] = [0, 1, 2].map((more) => text.charCodeAt(at + more));
        if ([a, b, c].some((code) => code > 255)) throw new Error("Only characters up to U+00FF can be encoded in base64");
        coded += ALPHABET[a >> 2] + ALPHABET[((a & 3) << 4) | (b >> 4)];
        coded += (at + 1 < text.length ? ALPHABET[((b & 15) << 2) | (c >> 6)] : "=") + (at + 2 < text.length ? ALPHABET[c & 63] : "=");
      }
      return coded;
    },
    atob(coded) {
      let text = "";
      let bits = 0;
      let held = 0;
      for (const letter of coded.replace(/[\\s=]/g, "")) {
        const value = ALPHABET.indexOf(letter);
        if (value < 0) throw new Error("Invalid base64");
        held = (held << 6) | value;
        bits += 6;
        if (bits >= 8) {
          bits -= 8;
          text += String.fromCharCode((held >> bits) & 255);
        }
        held &= 63;
      }
      return text;
    },
  };

  const compile = jsonata;
  const compiled = new Map();
  const expressionOf = (source) => {
    if (compiled.has(source)) return compiled.get(source);
    const expression = compile(source, limits);
    // Also for names that $eval brings.
    for (const name of Object.keys(impure)) expression.registerFunction(name, refuse(name));
    if (compiled.size >= 100) compiled.clear();
    compiled.set(source, expression);
    return expression;
  };

  // JSONata quotes values of the input in some of its sentences.
  const describe = (error) => {
    const cause = error && error.error ? error.error : error;
    const { message, value, value2 } = cause;
    let told = String(message);
    for (const each of [value, value2]) {
      const json = typeof each === "string" || typeof each === "object" ? JSON.stringify(each) : undefined;
      if (json !== undefined && json.length > 2) told = told.split(json).join("…");
    }
    return { message: told, stack: error && Number.isInteger(error.position) ? String(error.position) : "" };
  };

  // One expression leaves nothing behind that another could find.
  for (const { prototype } of [Object, Array, Function, String, Number, Boolean, RegExp, Error, Promise, RealDate, Map, Set]) Object.seal(prototype);
  Object.freeze(globalThis.window);

  return async (source, input) => {
    try {
      const value = await expressionOf(source).evaluate(input === undefined ? undefined : JSON.parse(input));
      // Nothing found is nothing, and a function no JSON.
      const isFunction = value && (value._jsonata_function || value._jsonata_lambda);
      return isFunction ? "null" : (JSON.stringify(value) ?? "null");
    } catch (error) {
      throw describe(error);
    }
  };
})()`;
