// How secrets are found in texts: docs/areas/workflow-service.md, "Secrets".
import { Secret } from "@portico/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

/** What a node answered, as the history shows it, in a service with these secrets. */
async function shown(secrets: Readonly<Record<string, string>>, output: unknown): Promise<any> {
  await using service = await startWorkflowService({
    definitions: { "echo.yaml": { nodes: { a: { type: "repeatable", with: { say: "${{ parameters.output }}" } } } } },
    runtime: { secrets: Object.fromEntries(Object.entries(secrets).map(([name, text]) => [name, new Secret(text)])) },
  });
  const detail = await service.ended("echo", await service.trigger("echo", { output }));
  return detail.nodeResults.a.outputs;
}

/** A text in base64, with stars for the characters that carry a bit of the part from `start` to `end`, and for what pads them. */
function starred(text: string, alphabet: "base64" | "base64url", start: number, end: number): string {
  const characters = [...Buffer.from(text).toString(alphabet)];
  const isSecret = (at: number) => at * 6 + 6 > start * 8 && at * 6 < end * 8;
  const last = Math.ceil((end * 8) / 6);
  return characters
    .map((character, at) => (isSecret(at) || (character === "=" && last === characters.indexOf("=")) ? "\0" : character))
    .join("")
    .replace(/\0+/g, "***");
}

describe("secrets in texts", () => {
  it("are masked in base64 and base64url at any position of the encoded text", async () => {
    const secrets = ["s3cr3t-value", "abcd", "ab\u{1f680}cd?>~", "0123456789abcdef0", "p@ss/w+rd=="];
    const places = fc.sample(fc.record({ before: fc.string({ maxLength: 7 }), after: fc.string({ maxLength: 7 }) }), {
      numRuns: 150,
      seed: 7,
    });
    const cases = secrets.flatMap((secret) =>
      places.flatMap(({ before, after }) =>
        (["base64", "base64url"] as const).map((alphabet) => {
          const text = `${before}${secret}${after}`;
          const start = Buffer.byteLength(before);
          const expected = starred(text, alphabet, start, start + Buffer.byteLength(secret));
          return { text: `Basic ${Buffer.from(text).toString(alphabet)}`, expected: `Basic ${expected}` };
        }),
      ),
    );
    const outputs = await shown(
      Object.fromEntries(secrets.map((secret, at) => [`S${at}`, secret])),
      cases.map(({ text }) => text),
    );
    expect(outputs).toEqual(cases.map(({ expected }) => expected));
  });

  it("are masked in URLs, forms, JSON and hex, in names, and if they overlap", async () => {
    const secrets = { ODD: 'a b/"ü"', FIRST: "abcdef", SECOND: "defghi", LONG: "abcdef-and-more", PIN: "482913" };
    const outputs = await shown(secrets, {
      path: `/x/${encodeURIComponent(secrets.ODD)}/y`,
      lower: encodeURIComponent(secrets.ODD).toLowerCase(),
      form: `${new URLSearchParams({ k: secrets.ODD })}&l=1`,
      json: JSON.stringify({ k: secrets.ODD }),
      hex: Buffer.from(secrets.ODD).toString("hex"),
      encodedInUrl: `?k=${encodeURIComponent(Buffer.from("???abcdef").toString("base64"))}`,
      over: "-abcdefghi-",
      longest: "abcdef-and-more, abcdef-and-less",
      [`is ${secrets.FIRST}`]: true,
      number: 482913,
      other: [482914, "abc def"],
    });
    expect(outputs).toEqual({
      path: "/x/***/y",
      lower: "***",
      form: "k=***&l=1",
      json: '{"k":"***"}',
      hex: "***",
      encodedInUrl: "?k=Pz8%2F***",
      over: "-***-",
      longest: "***, ***-and-less",
      "is ***": true,
      number: "***",
      other: [482914, "abc def"],
    });
  });

  it("are not masked where they have fewer than four characters, or in a part", async () => {
    expect(await shown({ SHORT: "abc", LONG: "abcdefgh" }, ["abc", "abcdefg"])).toEqual(["abc", "abcdefg"]);
  });
});
