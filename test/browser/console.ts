import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import axe from "axe-core";
import type { Browser, BrowserContextOptions, Page, Request } from "playwright-core";
import { expect } from "vitest";
import { type PorticoProcess, startPortico, temporaryFolder } from "../harness/portico-process.ts";

export interface ConsoleOptions {
  /** Of the file: `startChromium`. */
  readonly browser: Browser;
  /**
   * Contents by path below the working folder: a text, or a value that is written as JSON: `{ "agents/helper/agent.json": { name: "Helper"
   * } }`.
   */
  readonly files?: Readonly<Record<string, unknown>>;
  /** Written to `portico.config.json`. */
  readonly config?: unknown;
  readonly env?: Readonly<Record<string, string>>;
  /** Size of the window, preferred theme and more; default: a desktop, light. */
  readonly context?: BrowserContextOptions;
  /** Origins of other sites to which the page may lead. */
  readonly elsewhere?: readonly string[];
  /** Default: true. */
  readonly isSignedIn?: boolean;
  /** Whether the page may become idle, and then ask the service rarely. Default: false, because tests wait for what others change. */
  readonly mayIdle?: boolean;
}

/** The web console in a browser, with its own started preset `local`. */
export interface OpenConsole extends AsyncDisposable {
  readonly page: Page;
  readonly service: PorticoProcess;
  /** The instance token. */
  readonly token: string;
  /** Sign in by hand, as a person does. */
  signIn(token?: string): Promise<void>;
  /** Opens a page by its name in the navigation, and waits until it has loaded its data. */
  goTo(title: string): Promise<void>;
  /** Waits until the page has shown the answers to its requests. A visible page asks again soon. */
  untilRead(): Promise<void>;
  /** A call of the agent service with the instance token, beside the page. Answers the parsed body; throws for an error. */
  call(method: string, path: string, body?: unknown): Promise<any>;
  /**
   * Faults of the page: uncaught errors, `console.error`, violations of the Content-Security-Policy, requests to other hosts, and
   * missing files. Disposing throws if there was any fault.
   */
  readonly problems: readonly string[];
}

/** The interval at which a page reloads its data, short so that no test waits for it. */
const REFRESH_MS = 200;

/** The environment and the configuration of a service whose only model, `large`, is at a fake upstream of the Messages format. */
export function withFakeModel({ baseUrl }: { readonly baseUrl: string }): Pick<ConsoleOptions, "env" | "config"> {
  const provider = { id: "main", type: "fake", protocol: "messages", baseUrl, models: ["large"] };
  return {
    env: { UPSTREAM_KEY: "key-of-the-upstream" },
    config: { providers: [{ ...provider, credential: { env: "UPSTREAM_KEY" } }] },
  };
}

export const PHONE = { width: 390, height: 844 };
export const DESKTOP = { width: 1280, height: 860 };

/** Start a `local` preset, open its console, and sign in. */
export async function openConsole(options: ConsoleOptions): Promise<OpenConsole> {
  const { browser, files = {}, config = {}, env, context: around, isSignedIn = true, mayIdle = false, elsewhere = [] } = options;
  const folder = temporaryFolder();
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  }
  const service = await startPortico({
    cwd: folder.path,
    args: ["local"],
    config: { shutdownGraceMs: 100, ...(config as object) },
    ...(env && { env }),
  });
  const token = (JSON.parse(service.read("credentials.json")) as { agentServiceToken: string }).agentServiceToken;
  const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: "reduce", ...around });
  // What is late tells of a busy machine.
  context.setDefaultTimeout(120_000);
  await context.addInitScript(refreshSooner, REFRESH_MS);
  if (!mayIdle) await context.addInitScript(stayActive);
  const page = await context.newPage();
  const problems = watch(page, [...Object.values(service.ready.listeners).map(({ url }) => url), ...elsewhere]);
  const unanswered = watchRequests(page);

  const opened: OpenConsole = {
    page,
    service,
    token,
    problems,
    async signIn(given = token) {
      await page.getByLabel("Instance token").fill(given);
      await page.getByRole("button", { name: "Sign in" }).click();
    },
    async goTo(title) {
      await page.getByRole("navigation").getByRole("link", { name: title, exact: true }).click();
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
      await page
        .getByRole("status")
        .filter({ hasText: /^\s*Loading / })
        .first()
        .waitFor({ state: "detached" });
    },
    async untilRead() {
      const asked = new Set<string>();
      for (;;) {
        // An answer may lead to the next request. The shell repeats its own.
        await page.evaluate(painted);
        const open = [...unanswered].filter((request) => !asked.has(request.url()));
        if (open.length === 0) return;
        for (const request of open) asked.add(request.url());
        const left = () => open.filter((request) => unanswered.has(request)).map((request) => request.url());
        await expect.poll(left).toEqual([]);
      }
    },
    async call(method, path, body) {
      const answer = await fetch(service.url("agent") + path, {
        method,
        headers: { "x-agent-service-token": token, ...(body !== undefined && { "content-type": "application/json" }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
      return answer.json();
    },
    async [Symbol.asyncDispose]() {
      await context.close();
      await service[Symbol.asyncDispose]();
      folder.remove();
      if (problems.length > 0) throw new Error(`The page did what it should not:\n${problems.join("\n")}`);
    },
  };
  await page.goto(`${service.url("agent")}/`);
  if (isSignedIn) {
    await opened.signIn();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  }
  return opened;
}

const LOOKS = {
  light: { colorScheme: "light", viewport: DESKTOP },
  dark: { colorScheme: "dark", viewport: DESKTOP },
  phone: { colorScheme: "light", viewport: PHONE },
  "dark phone": { colorScheme: "dark", viewport: PHONE },
} as const;

/**
 * The faults of the current page on a desktop and on a phone, each in light and dark mode: findings of axe, and a page that is wider than
 * the window. Leaves the page light, on a desktop.
 */
export async function findingsInEveryLook(page: Page): Promise<string[]> {
  const findings: string[] = [];
  for (const [look, { colorScheme, viewport }] of Object.entries(LOOKS)) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(viewport);
    await page.evaluate(painted);
    findings.push(...(await accessibilityFindings(page)).map((finding) => `${look}: ${finding}`));
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > viewport.width) findings.push(`${look}: ${width} wide in a window of ${viewport.width}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(DESKTOP);
  return findings;
}

async function accessibilityFindings(page: Page): Promise<string[]> {
  if (await page.evaluate(() => !("axe" in globalThis))) await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: typeof axe }).axe.run(document, { resultTypes: ["violations"], preload: false }),
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")} (${failureSummary})`),
  );
}

/** Runs in the page before its own scripts. */
function refreshSooner(everyMs: number): void {
  const wholeSeconds = globalThis.setInterval;
  globalThis.setInterval = ((run: () => void, ms = 0, ...given: []) =>
    wholeSeconds(run, ms < 1000 ? ms : everyMs, ...given)) as typeof globalThis.setInterval;
}

/** Runs in the page before its own scripts: the page takes this for input of a user. */
function stayActive(): void {
  setInterval(() => dispatchEvent(new Event("focus")), 1000);
}

/** Runs in the page: another theme or width is there when it has been painted. */
function painted(): Promise<unknown> {
  return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
}

/** The requests that have no whole answer yet. Of streams and of probes, whose bodies the page does not read, the headers are enough. */
function watchRequests(page: Page): ReadonlySet<Request> {
  const unanswered = new Set<Request>();
  const forget = (request: Request) => void unanswered.delete(request);
  page.on("request", (request) => {
    if (!request.url().includes("/socket.io/")) unanswered.add(request);
  });
  page.on("requestfinished", forget);
  page.on("requestfailed", forget);
  page.on("response", (response) => {
    const isStream = response.headers()["content-type"]?.startsWith("text/event-stream");
    if (isStream || /\/(?:readyz|healthz)$/.test(response.url())) forget(response.request());
  });
  return unanswered;
}

function watch(page: Page, urls: readonly string[]): string[] {
  const problems: string[] = [];
  const origins = new Set(urls.map((url) => new URL(url).origin));
  page.on("pageerror", (error) => problems.push(`An error that nobody caught: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    // The page itself shows answers with an error. Errors of the page itself are checked below.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) problems.push(message.text());
  });
  page.on("request", (request) => {
    const { protocol, origin, href } = new URL(request.url());
    if (/^(?:https?|wss?):$/.test(protocol) && !origins.has(origin.replace(/^ws/, "http")))
      problems.push(`A request to elsewhere: ${href}`);
  });
  page.on("response", (response) => {
    const { pathname } = new URL(response.url());
    if (response.status() >= 400 && /^\/(?:console\/.*)?$/.test(pathname)) problems.push(`${response.status()}: ${pathname}`);
  });
  return problems;
}
