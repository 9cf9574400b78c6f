import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll } from "vitest";

const USUAL_PATHS = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/**
 * The browser that `PORTICO_TEST_CHROMIUM` names, or the system's own. Undefined where there is none, for tests that are then skipped; but where
 * `CI` is set or the variable names one, its absence is an error.
 */
export function findChromium(): string | undefined {
  const named = process.env["PORTICO_TEST_CHROMIUM"];
  const found = (named ? [named] : USUAL_PATHS).find((path) => existsSync(path));
  if (found !== undefined || (!named && !process.env["CI"])) return found;
  throw new Error("No Chromium is found in which a test may open pages");
}

/** For the one test file that says it for all. */
export function sayThatPagesAreSkipped(): void {
  console.warn("Tests in a browser are skipped: no Chromium is found (PORTICO_TEST_CHROMIUM names one)");
}

/** One browser for a whole test file. Its tests stand in a `describe.skipIf(findChromium() === undefined)`. */
export function useChromium(): () => Browser {
  const path = findChromium();
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (path !== undefined) browser = await startChromium(path);
  });
  afterAll(() => browser?.close());
  return () => browser!;
}

/** Start one that does nothing by itself. Close it at the end: once for a test file is enough. */
export function startChromium(executablePath: string): Promise<Browser> {
  const isRoot = process.getuid?.() === 0;
  return chromium.launch({
    executablePath,
    chromiumSandbox: !isRoot,
    args: [
      ...["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
      ...["--disable-component-update", "--disable-sync"],
    ],
  });
}
