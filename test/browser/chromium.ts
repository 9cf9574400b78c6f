import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll } from "vitest";

/** Tests take these types from here, because only this folder has the package. */
export type { Browser, Locator, Page, Request, WebSocketRoute } from "playwright-core";

const USUAL_PATHS = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/**
 * The browser that `PORTICO_TEST_CHROMIUM` names, or the system's own. Undefined without a browser: tests are then skipped. If
 * `CI` is set or the variable names a browser, a missing one is an error.
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

/** The browser of this process, for its test files one after another. */
const shared: { browser?: Promise<Browser> | undefined; users: number; idle?: NodeJS.Timeout | undefined } = { users: 0 };
/** How long it waits for the next file that uses it. */
const IDLE_MS = 10_000;

/**
 * A browser for a whole test file. It closes the pages that the file opens. The tests are in a `describe.skipIf(findChromium() ===
 * undefined)`.
 */
export function useChromium(): () => Browser {
  const path = findChromium();
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (path === undefined) return;
    shared.users++;
    clearTimeout(shared.idle);
    browser = await (shared.browser ??= startChromium(path));
    // A browser starts slowly while other tests use all cores.
  }, 180_000);
  afterAll(() => {
    if (path === undefined || --shared.users > 0) return;
    // A process that ends in the meantime takes it along: they are connected by a pipe.
    shared.idle = setTimeout(() => {
      void shared.browser?.then((idle) => idle.close());
      shared.browser = undefined;
    }, IDLE_MS).unref();
  });
  return () => browser!;
}

/** Starts a browser that sends no requests of its own. Close it at the end: one per test file is enough. */
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
