import { type CauseDescription, describeCause } from "@portico/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

describe("the description of a cause", () => {
  it("is its name, its code and where it was thrown, the innermost place first", () => {
    const described = describeCause(Object.assign(new RangeError("hunter2"), { code: "E_FULL", body: "hunter2" }));
    expect(described).toMatchObject({ name: "RangeError", code: "E_FULL" });
    expect(described.at![0]).toMatch(/describe-cause\.test\.ts:\d+:\d+/);
    expect(JSON.stringify(described)).not.toContain("hunter2");
  });

  it("goes down to the causes, as deep as five", () => {
    let error = new Error("root");
    for (let depth = 0; depth < 9; depth++) error = new Error("outer", { cause: error });
    const names: string[] = [];
    for (let each: CauseDescription | undefined = describeCause(error); each; each = each.cause) names.push(each.name);
    expect(names).toEqual(Array(5).fill("Error"));
  });

  it("never contains the message, in whichever form the stack repeats it", () => {
    const secret = "very-secret-4711";
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.constantFrom("\n", "\n    at ", "\r\n", " (", ":1:1)"), (before, after, joint) => {
        const message = `${before}${joint}${secret}${joint}${after}`;
        const error = new Error(message, { cause: new TypeError(message) });
        expect(JSON.stringify(describeCause(error))).not.toContain(secret);
        error.message = "changed since";
        expect(JSON.stringify(describeCause(Object.assign(new Error(message), { name: message, code: message })))).not.toContain(
          secret,
        );
      }),
    );
  });

  it("takes no line of a message for a place", () => {
    const { at } = describeCause(new Error("first\n    at hunter2 (file.ts:1:1)\n    at hunter2.ts:2:2"));
    expect(at!.length).toBeGreaterThan(0);
    expect(at!.filter((place) => place.includes("hunter2"))).toEqual([]);
  });

  it.each([
    ["a text", "hunter2", { name: "string" }],
    ["nothing", undefined, { name: "undefined" }],
    ["null", null, { name: "object" }],
    ["a bare object", { message: "hunter2" }, { name: "Error" }],
    ["a name that is a sentence", { name: "not a name" }, { name: "Error" }],
    ["a numeric code", { name: "X", code: 20 }, { name: "X", code: 20 }],
  ])("of %s is its kind", (_what, cause, expected) => {
    expect(describeCause(cause)).toEqual(expected);
  });

  it("survives a getter that throws", () => {
    const hostile = Object.defineProperties(new Error("x"), {
      stack: {
        get: () => {
          throw new Error("hunter2");
        },
      },
      cause: {
        get: () => {
          throw new Error("hunter2");
        },
      },
    });
    expect(describeCause(hostile)).toEqual({ name: "Error" });
  });
});
