import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildApiReference } from "../../../release/build-api-reference.ts";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { hasTools } from "../../harness/oracle.ts";

const isInstalled = hasTools("release", "Tests of the API reference");

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "portico-api-reference-"));
  if (isInstalled) await buildApiReference(folder);
}, 60_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

describe.skipIf(!isInstalled)("the API reference", () => {
  it("has a page and a document per surface, and the viewer's license", async () => {
    const documents = ["agent.asyncapi", "agent.openapi", "proxy.openapi", "workflow.asyncapi", "workflow.openapi"];
    expect((await readdir(folder)).filter((file) => file.endsWith(".json")).sort()).toEqual(
      documents.map((name) => `${name}.json`),
    );
    expect(await readdir(folder)).toEqual(
      expect.arrayContaining(["index.html", "agent.html", "proxy.html", "workflow.html", "LICENSE", "NOTICE"]),
    );
  });
});

describe.skipIf(!isInstalled || findChromium() === undefined)(
  "the API reference in a browser (skipped where there is none)",
  () => {
    const browser = useChromium();

    it(
      "links to each surface, shows every call, requests nothing from other hosts, and obeys its own policy",
      { timeout: 240_000 },
      async () => {
        await using context = await browser().newContext();
        // The viewer lays out more than a hundred calls, which is slow on a busy machine.
        context.setDefaultTimeout(60_000);
        const page = await context.newPage();
        const troubles: string[] = [];
        page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
        page.on("pageerror", (error) => troubles.push(error.message));
        page.on("request", (request) => /^(?:file|data):/.test(request.url()) || troubles.push(request.url()));

        const list = pathToFileURL(join(folder, "index.html")).href;
        for (const [title, call] of [
          ["Portico model proxy", "/v1/messages"],
          ["Portico workflow service", "/api/workflow/run"],
          ["Portico agent service", "/api/runs"],
        ] as const) {
          await page.goto(list);
          await page.getByRole("link", { name: title }).click();
          await page.getByRole("heading", { name: title }).waitFor();
          await page.getByText(call, { exact: true }).first().waitFor();
        }
        await page.getByText("/api/handshake", { exact: true }).click();
        await page.getByText("Responses", { exact: true }).first().waitFor();
        expect(troubles).toEqual([]);
      },
    );
  },
);
