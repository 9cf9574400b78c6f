import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PromptTooLong, renderTemplate, templateFields } from "../../../plugins/src/agent-webhook/render-template.ts";

const PLENTY = 1_000_000;

/** As a trigger's body comes in: `__proto__` in JSON is a field like any other. */
const payloadOf = (json: string) => JSON.parse(json) as Record<string, unknown>;
const render = (template: string, json: string) => renderTemplate(template, payloadOf(json), PLENTY);

describe("a prompt template (4.4)", () => {
  it.each([
    ["a text as it is", "Hi {{who}}!", '{"who":"Ann \\"B\\"\\n"}', 'Hi Ann "B"\n!'],
    ["an empty text as nothing", "[{{who}}]", '{"who":""}', "[]"],
    ["a number as text", "{{a}} {{b}} {{c}}", '{"a":0,"b":-1.5,"c":1e21}', "0 -1.5 1e+21"],
    ["a boolean as text", "{{a}} {{b}}", '{"a":true,"b":false}', "true false"],
    ["an object as JSON", "{{a}}", '{"a":{"b":[1,null,"é"]}}', '{"b":[1,null,"é"]}'],
    ["an array as JSON", "{{a}}{{b}}", '{"a":[],"b":["x"]}', '[]["x"]'],
    ["one field as often as it is named", "{{a}}{{a}} {{a}}", '{"a":"x"}', "xx x"],
  ])("shows %s", (_, template, json, prompt) => {
    expect(render(template, json)).toBe(prompt);
  });

  it.each([
    ["a field that is missing", "{{a}} {{b}}", '{"b":1}', "{{a}} 1"],
    ["a field that is null", "{{a}}", '{"a":null}', "{{a}}"],
    ["what has no key", "{{}} {a} {{a} {a}}", '{"a":1,"":2}', "{{}} {a} {{a} {a}}"],
    ["a key that the payload spells otherwise", "{{ a }}{{A}}", '{"a":1}', "{{ a }}{{A}}"],
    ["braces within braces", "{{{a}b}}", '{"a":1,"{a}b":2}', "{{{a}b}}"],
  ])("leaves %s unchanged", (_, template, json, prompt) => {
    expect(render(template, json)).toBe(prompt);
  });

  it("takes any key without braces, to the letter", () => {
    expect(render("{{ a }}|{{a-b c}}|{{é😀}}|{{a\nb}}", '{" a ":1,"a-b c":2,"é😀":3,"a\\nb":4}')).toBe("1|2|3|4");
  });

  it("names its fields once each, in their order", () => {
    expect(templateFields("{{b}} {{ a }} {{b}} {{}} {c} {{{d}}}")).toEqual(["b", " a ", "d"]);
    expect(templateFields("nothing")).toEqual([]);
  });

  it("finds a placeholder among more braces", () => {
    expect(render("{{{a}}} {{{{a}}}}", '{"a":1}')).toBe("{1} {{1}}");
  });

  it("knows no nested path: {{a.b}} is a field of that name", () => {
    expect(render("{{a.b}} {{a.c}}", '{"a":{"b":1,"c":2},"a.b":3}')).toBe("3 {{a.c}}");
  });

  it("shows nothing that the payload inherits", () => {
    const template = "{{__proto__}}{{constructor}}{{toString}}{{hasOwnProperty}}{{__defineGetter__}}";
    expect(render(template, "{}")).toBe(template);
    expect(renderTemplate("{{secret}}", Object.create({ secret: "x" }) as Record<string, unknown>, PLENTY)).toBe("{{secret}}");
  });

  it("shows fields that are called like what objects inherit", () => {
    expect(render("{{__proto__}} {{constructor}} {{toString}}", '{"__proto__":{"a":1},"constructor":"c","toString":2}')).toBe(
      '{"a":1} c 2',
    );
  });

  it("does not look again at what it put in", () => {
    expect(render("{{a}} {{b}}", '{"a":"{{b}}","b":"{{a}}"}')).toBe("{{b}} {{a}}");
    expect(render("{{{a}}}{{a}}", '{"a":"{b}","b":1}')).toBe("{{b}}{b}");
    expect(render("{{a}}b}}", '{"a":"{{","b":1}')).toBe("{{b}}");
  });

  it("puts in patterns of replacement as they are", () => {
    const json = JSON.stringify({ a: "$& $1 $$ $` $' $<a>", "$&": "$1" });
    expect(render("<{{a}}{{$&}}>", json)).toBe("<$& $1 $$ $` $' $<a>$1>");
  });

  it("makes well-formed text", () => {
    expect(render("\ud800{{a}}", '{"a":"x\\udc00","b":1}')).toBe("\ufffdx\ufffd");
    expect(render("{{a}}{{b}}", '{"a":"\\ud83d","b":"\\ude00"}')).toBe("😀");
  });

  it("is as long as it may be, and not a character longer", () => {
    const payload = { a: "12345" };
    expect(renderTemplate("<{{a}}{{a}}>", payload, 12)).toBe("<1234512345>");
    expect(() => renderTemplate("<{{a}}{{a}}>", payload, 11)).toThrow(PromptTooLong);
    expect(() => renderTemplate("{{b}}", payload, 4)).toThrow(PromptTooLong);
    expect(() => renderTemplate("", payload, -1)).toThrow(PromptTooLong);
    expect(renderTemplate("{{much longer than what it stands for}}", { "much longer than what it stands for": "" }, 0)).toBe("");
  });

  it("is refused without being put together: 6,500 placeholders of a field of 1 MiB", () => {
    const template = "{{a}}".repeat(6553);
    expect(() => renderTemplate(template, { a: "x".repeat(1024 * 1024) }, 8 * 1024 * 1024)).toThrow(PromptTooLong);
    // As one text it would be longer than texts can be.
    expect(() => renderTemplate(template, { a: "x".repeat(1024 * 1024) }, Infinity)).toThrow(RangeError);
  });

  it("writes an object once, however often it is named", () => {
    let written = 0;
    const counting = { toJSON: () => ++written };
    expect(renderTemplate("{{a}}".repeat(5000), { a: counting }, PLENTY)).toBe("1".repeat(5000));
    expect(written).toBe(1);
  });

  it("repeats nothing of the payload in an error", () => {
    expect(() => renderTemplate("{{a}}", { a: "private" }, 2)).toThrow(/^The prompt would be longer than 2 characters$/);
  });
});

describe("for any template and payload", () => {
  it("the prompt equals what a reader of single characters renders, or is too long", () => {
    fc.assert(
      fc.property(template, payload, fc.nat(120), (template, json, most) => {
        const wanted = read(template, payloadOf(json));
        const rendered = () => renderTemplate(template, payloadOf(json), most);
        if (wanted.length > most) expect(rendered).toThrow(PromptTooLong);
        else expect(rendered()).toBe(wanted);
      }),
      { numRuns: 5000 },
    );
  });

  it("the prompt is well-formed", () => {
    fc.assert(
      fc.property(template, payload, (template, json) => {
        expect(render(template, json).isWellFormed()).toBe(true);
      }),
    );
  });
});

const key = fc.constantFrom("a", "b", "a.b", " a", "__proto__", "constructor", "toString", "$&", "é");
const template = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: key.map((name) => `{{${name}}}`) },
      { weight: 3, arbitrary: fc.constantFrom("{", "}", "{{", "}}", "a", "$1", "\n", "\ud800", "\udc00", "😀", "text ") },
      { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(""));
const value = fc.oneof(
  fc.constantFrom("{{a}}", "{{b}}", "}}", "{{", "$&$1", "", "\ud83d", "\ude00"),
  fc.string({ maxLength: 8 }),
  fc.jsonValue({ maxDepth: 2 }),
);
/** As text, so that `__proto__` comes as a field and not as a prototype. */
const payload = fc
  .uniqueArray(fc.tuple(key, value), { selector: ([name]) => name, maxLength: 6 })
  .map((fields) => `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}`);

/** The rule, read character by character. */
function read(template: string, payload: Record<string, unknown>): string {
  const fields = new Map(Object.entries(payload));
  let prompt = "";
  for (let at = 0; at < template.length;) {
    let end = at + 2;
    while (end < template.length && template[end] !== "{" && template[end] !== "}") end++;
    const isPlaceholder = template.startsWith("{{", at) && end > at + 2 && template.startsWith("}}", end);
    const value = isPlaceholder ? fields.get(template.slice(at + 2, end)) : undefined;
    if (value === undefined || value === null) prompt += template[at++];
    else {
      prompt += typeof value === "object" ? JSON.stringify(value) : `${value as string | number | boolean}`;
      at = end + 2;
    }
  }
  return prompt.toWellFormed();
}
