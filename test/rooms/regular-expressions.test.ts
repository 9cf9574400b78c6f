import { CREDENTIAL_PREFIXES } from "@portico/core";
import { expect, it } from "vitest";
import { hasTools, loadOracle } from "../harness/oracle.ts";
import { patternsOf, type SourcePattern } from "./patterns-of.ts";
import { readText, repositoryFiles } from "./repository.ts";

/** Patterns that may take more than linear time, each with the bound of its input. */
const BOUNDED: Readonly<Record<string, string>> = {};

const { safeToken, webhookSecret, executionGrant, ...others } = CREDENTIAL_PREFIXES;
/** Calls of `RegExp` with a variable part, by file. The value is the pattern with an example of the part. */
const COMPOSED: Readonly<Record<string, string>> = {
  // The id of a node: letters, digits, "-" and "_".
  "plugins/src/workflow-service/definition/lint-definition.ts": "\\bhas\\(\\s*nodes(?:\\.node1\\b|\\[[\"']node1[\"']\\])",
  "plugins/src/model-proxy/own-credentials.ts": `${safeToken}|(?:^|[^\\w-])(?:${webhookSecret}|${executionGrant}|(?:${Object.values(others).join("|")})[\\w.-]{43})`,
};

/** What we use of `recheck`. */
interface Recheck {
  check(pattern: string, flags: string | undefined, options: object): Promise<Outcome>;
}

type Outcome =
  | { readonly status: "safe" }
  | { readonly status: "vulnerable"; readonly complexity: { readonly summary: string } }
  | { readonly status: "unknown"; readonly error: { readonly kind: string } };

const isExamined = hasTools("test/oracles", "Tests of the time of regular expressions");

/** Without timeouts inside, whose outcome would depend on the load of the machine. */
const OPTIONS = { randomSeed: 1, attackTimeout: null, incubationTimeout: null, timeout: null } as const;

const found: readonly (SourcePattern & { readonly file: string })[] = (
  await Promise.all(
    (await repositoryFiles())
      .filter((file) => /^(?:core|adapters|plugins|client|presets|console)\/.*\.(?:ts|svelte)$/.test(file))
      .map(async (file) => patternsOf(file, await readText(file)).map((each) => ({ file, ...each }))),
  )
).flat();

/**
 * `recheck` examines automata. Large counts multiply the states, so a count above 12 becomes `*` or `+`. The pattern then matches more, and
 * one that is linear without the bound is linear with it.
 */
function withoutCounts(pattern: string): string {
  return pattern.replaceAll(
    /\\.|\[(?:[^\]\\]|\\.)*\]|\{(?<least>\d+)(?<comma>,?)(?<most>\d*)\}/gs,
    (written: string, ...rest: unknown[]) => {
      const { least, comma, most } = rest.at(-1) as { least?: string; comma?: string; most?: string };
      if (least === undefined || Number(comma === "" ? least : most) <= 12) return written;
      return least === "0" ? "*" : "+";
    },
  );
}

it.skipIf(!isExamined)(
  "every regular expression of the product takes linear time, or its input has a bound",
  { timeout: 300_000 },
  async () => {
    const { check } = await loadOracle<Recheck>("recheck");
    expect(found.length).toBeGreaterThan(300);
    const distinct = [...new Map(found.map((each) => [each.written, each])).values()];
    const checked = await Promise.all(
      distinct.map(async ({ file, written, pattern = COMPOSED[file], flags }) => {
        if (pattern === undefined) return { file, written, why: "cannot be read: list it in COMPOSED" };
        const outcome = await check(withoutCounts(pattern), flags, OPTIONS);
        if (outcome.status === "safe") return [];
        return { file, written, why: outcome.status === "vulnerable" ? outcome.complexity.summary : outcome.error.kind };
      }),
    );
    const superlinear = checked.flat();
    expect(superlinear.filter(({ written }) => !(written in BOUNDED))).toEqual([]);
    expect(
      Object.keys(BOUNDED).filter((each) => !superlinear.some(({ written }) => written === each)),
      "exceptions without need",
    ).toEqual([]);
    expect(
      Object.keys(COMPOSED).filter((each) => !found.some(({ file, pattern }) => file === each && pattern === undefined)),
      "exceptions without need",
    ).toEqual([]);
  },
);
