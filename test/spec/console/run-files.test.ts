import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

const BYTES = Buffer.alloc(1_500_000, "rows of an export\n");

describe.skipIf(findChromium() === undefined)("the files of a run in the web console", () => {
  const browser = useChromium();
  let server: Server;
  let opened: OpenConsole;
  beforeAll(async () => {
    server = createServer((_request, response) => response.writeHead(200, { "content-type": "text/csv" }).end(BYTES));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${"long-name-".repeat(12)}.csv`;
    opened = await openConsole({
      browser: browser(),
      files: { "workflows/export.json": { nodes: { fetch: { type: "http", with: { url, response: "file" } } } } },
      config: { workflow: { http: { allow: ["127.0.0.1"] } } },
    });
  });
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
    server.close();
  });

  it("are listed with their type and size, and saved as they are", async () => {
    const { page } = opened;
    await opened.goTo("Workflows");
    await page.evaluate(() => void (location.hash = "#/workflows/export"));
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Start" }).click();
    const files = page.getByRole("table", { name: "Files of the run" });
    await files.getByText("text/csv").waitFor();
    expect(await files.getByRole("row").last().textContent()).toContain("1.5 MB");
    const downloading = page.waitForEvent("download");
    await files.getByRole("button", { name: /^Download/ }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toMatch(/^long-name-.*\.csv$/);
    expect(readFileSync((await download.path())!).equals(BYTES)).toBe(true);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.setViewportSize(PHONE);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width);
    await page.setViewportSize(DESKTOP);
  });
});
