import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { loadConfig, ports } from "@portico/core";
import { beforeAll, describe, expect, it } from "vitest";
import { DEFAULT_TIMEOUTS } from "../../../adapters/src/models/http-options.ts";
import { MODEL_BYTES, NESTING_LEVELS } from "../../../plugins/src/model-proxy/body-scan.ts";
import { STREAM_EVENT_CHARACTERS } from "../../../core/src/model-protocols/read-answer.ts";
import { ERROR_MESSAGE_CHARACTERS } from "../../../core/src/model-protocols/read-upstream-error.ts";
import { DEFAULT_MAX_TOKENS, DEFAULT_MAX_TOKENS_THINKING } from "../../../core/src/model-protocols/request/parameters.ts";
import { TOOL_ERROR_MARK } from "../../../core/src/model-protocols/turns/tool-error-mark.ts";
import { ANSWER_BYTES, ERROR_BYTES, EMPTY_PLACEHOLDER } from "@portico/core/model-protocols";
import { START_PLACEHOLDER } from "../../../core/src/model-protocols/turns/turns-to-messages.ts";
import * as limits from "../../../plugins/src/model-proxy/limits.ts";
import * as workflowLimits from "../../../plugins/src/workflow-service/contracts/limits.ts";
import { platformSchema } from "../../../presets/src/settings/platform.ts";
import { readText, repositoryFiles, root } from "../../rooms/repository.ts";
import { type Page, readPages } from "./pages.ts";

let pages: Page[];
beforeAll(async () => {
  pages = await readPages();
});

const textOf = (file: string) => pages.find((page) => page.file === file)!.text;
const kibibytes = (bytes: number) => (bytes < 1024 * 1024 ? `${bytes / 1024} KiB` : `${bytes / 1024 / 1024} MiB`);

describe("docs/areas/model-proxy.md with docs/areas/model-conversion.md", () => {
  it.each<string[]>([
    ["a request body", kibibytes(limits.REQUEST_BYTES)],
    ["what is gathered", kibibytes(limits.GATHERED_BYTES)],
    ["what is held", kibibytes(limits.HELD_BYTES)],
    ["an upstream's error", kibibytes(ERROR_BYTES)],
    ["an answer that is converted", kibibytes(ANSWER_BYTES)],
    ["what the event loop converts", kibibytes(limits.CONVERTED_HERE_BYTES)],
    ["the keep-alive", `${limits.KEEP_ALIVE_MS / 1000} s of silence`],
    ["an event", `${STREAM_EVENT_CHARACTERS / 1024 / 1024} Mi characters`],
    ["nesting", `${NESTING_LEVELS} levels`],
    ["a model's name", `${MODEL_BYTES} bytes`],
    ["an upstream's sentence", `${ERROR_MESSAGE_CHARACTERS.toLocaleString("en")} characters`],
    [
      "a missing limit",
      `${DEFAULT_MAX_TOKENS.toLocaleString("en")}, with reasoning ${DEFAULT_MAX_TOKENS_THINKING.toLocaleString("en")}`,
    ],
    ["a failed tool", `\`${TOOL_ERROR_MARK}\``],
    ["an empty user", `\`${EMPTY_PLACEHOLDER}\``],
    ["a missing start", `\`${START_PLACEHOLDER}\``],
    ...Object.entries(DEFAULT_TIMEOUTS).map(([name, ms]) => [name, `\`${name}\` (${ms / 1000} s`]),
  ])("says the number that the code has: %s", (_what, words) => {
    const text = textOf("docs/areas/model-proxy.md") + textOf("docs/areas/model-conversion.md");
    expect(text.replaceAll(/\s+/g, " ")).toContain(words);
  });
});

describe("docs/areas/workflow-service.md", () => {
  const page = () => textOf("docs/areas/workflow-service.md").replaceAll(/\s+/g, " ");

  it.each<string[]>([
    ["an output", `outputs | ${kibibytes(ports.NODE_OUTPUT_BYTES)}, ${ports.NODE_OUTPUT_LEVELS.toLocaleString("en")} levels |`],
    ["depth", `end at ${workflowLimits.WORKFLOW_DEPTH} levels`],
    ["a grant", `(${workflowLimits.GRANT_MS.usual / 60_000} minutes, up to ${workflowLimits.GRANT_MS.most / 86_400_000} days)`],
  ])("says the number that the code has: %s", (_what, words) => {
    expect(page()).toContain(words);
  });
});

describe("docs/configuration.md", () => {
  it("shows problems in the words of the start", () => {
    const { blocks } = pages.find(({ file }) => file === "docs/configuration.md")!;
    const file = { path: "/srv/portico.config.json", content: { proxi: {} } };
    const load = () => loadConfig(platformSchema, { file, env: { PORTICO_PROXY_PORT: "many" } });
    const message = blocks.find(({ language }) => language === "text")!.text.trim();
    expect(load).toThrow(expect.objectContaining({ message }));
  });
});

describe("docs/architecture.md", () => {
  it("draws the folders that there are", () => {
    const { blocks } = pages.find(({ file }) => file === "docs/architecture.md")!;
    const drawn = [...blocks.find(({ language }) => language === "text")!.text.matchAll(/^(\w+)\//gm)].map(
      ([, folder]) => folder!,
    );
    expect(drawn.length).toBeGreaterThan(5);
    expect(drawn.filter((folder) => !existsSync(resolve(root, folder)))).toEqual([]);
  });
});

describe("docs/ports", () => {
  const portNames = async () =>
    (await repositoryFiles())
      .flatMap((file) => /^core\/src\/ports\/([\w-]+)\.ts$/.exec(file)?.[1] ?? [])
      .filter((name) => name !== "index");

  it("has a page for every port, and lists it", async () => {
    const names = await portNames();
    expect(names).toContain("records");
    expect(names.filter((name) => !existsSync(resolve(root, `docs/ports/${name}.md`)))).toEqual([]);
    expect(names.filter((name) => !textOf("docs/ports/README.md").includes(`[${name}](${name}.md)`))).toEqual([]);
  });

  it("names every adapter of a port on the port's page", async () => {
    const missing: string[] = [];
    const names = await portNames();
    for (const file of await repositoryFiles()) {
      const [, annex = "adapters", port, technology] = /^adapters\/(?:(cluster)\/)?src\/([\w-]+)\/([\w-]+)\.ts$/.exec(file) ?? [];
      if (!port || !/= defineAdapter\(/.test(await readText(file))) continue;
      // Servers that adapters of several ports share have no page of their own.
      const texts = names.includes(port)
        ? [textOf(`docs/ports/${port}.md`)]
        : names.map((name) => textOf(`docs/ports/${name}.md`));
      if (!texts.some((text) => text.includes(`@portico/${annex}/${port}/${technology}`))) missing.push(file);
    }
    expect(missing).toEqual([]);
  });
});

describe("every page", () => {
  it("names imports that packages of this repository offer", () => {
    const { resolve: find } = createRequire(resolve(root, "test/package.json"));
    const named = pages.flatMap(
      ({ text }) => text.match(/@portico\/(?:core|adapters|cluster|workflow-nodes|plugins|test)(?:\/[a-z-]+)*(?![\w/*])/g) ?? [],
    );
    expect(new Set(named).size).toBeGreaterThan(25);
    const rooms = /^@portico\/(?:adapters|cluster|workflow-nodes|plugins|test)$/;
    expect([...new Set(named)].filter((name) => !rooms.test(name) && !isFound(() => find(name)))).toEqual([]);
  });

  it("leaves speed to docs/performance.md, where it was measured", () => {
    const speed =
      /\d[\d,.]* ?(?:requests?\/s|req\/s|rows\/s|[KMG]i?B\/s|µs\b|tokens\/s)|\d ?(?:×|times|%) (?:faster|slower|quicker)/;
    const told = pages
      .filter(({ file }) => file !== "docs/performance.md")
      .map(({ file, text }) => [file, speed.exec(text)?.[0]]);
    expect(told.filter(([, found]) => found !== undefined)).toEqual([]);
    expect("it does 2,000 requests/s").toMatch(speed);
  });
});

function isFound(find: () => string): boolean {
  try {
    return existsSync(find());
  } catch {
    return false;
  }
}
