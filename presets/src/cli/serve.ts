import { type App, createApp, ports, type Secret } from "@portico/core";
import { type DataDirectory, dataDirectory } from "../platform/data-directory.ts";
import type { TokenOf } from "../platform/own-token.ts";
import { chooseProviders, type ServedProvider } from "../platform/provider-choice.ts";
import { WEB_CONSOLE } from "../platform/web-console.ts";
import type { PlatformSettings } from "../settings/platform.ts";
import { lockDataDirectory, makeDataDirectory } from "./data-lock.ts";
import { removeOwnEndpoints, writeEndpoints } from "./endpoints-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { type Listeners, openListeners } from "./listeners.ts";
import type { StartablePreset } from "./preset-table.ts";
import { listenForStop, type StopRequest } from "./stop-request.ts";

/** Closing the stores takes milliseconds; when it hangs, the process ends all the same. */
const CLOSE_MS = 5_000;

export interface Service {
  readonly preset: string;
  readonly directory: DataDirectory;
  readonly providers: readonly ServedProvider[];
  /** Surface name to URL. */
  readonly urls: Readonly<Record<string, string>>;
  /** The web console's page, where it is served. */
  readonly console: string | undefined;
  /** Tokens that were made just now, because no setting gives them: this is the only time to show them. */
  readonly madeTokens: readonly MadeToken[];
}

export interface MadeToken {
  readonly of: TokenOf;
  readonly token: Secret;
}

/**
 * Run a preset until it is asked to stop; answers the exit code. `settings` is read after the wish to stop can be heard, `announce` is
 * called when everything listens. Throws CommandFailed where the start fails; everything that was opened is closed then.
 */
export async function serve<T extends PlatformSettings>(
  preset: StartablePreset<T>,
  read: () => Promise<{ readonly settings: T }>,
  announce: (service: Service) => void,
): Promise<number> {
  const stop = listenForStop();
  const undo: (() => unknown)[] = [];
  try {
    const service = await start(preset, (await read()).settings, stop, undo);
    announce(service);
    return await stop.requested;
  } catch (error) {
    if (stop.signal.aborted && error === stop.signal.reason) return await stop.requested;
    throw error;
  } finally {
    await undoAll(undo);
  }
}

/** Last in, first out. One that fails keeps nothing else open, for the next start needs the lock; the first failure is thrown in the end. */
async function undoAll(undo: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of undo.toReversed()) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function start<T extends PlatformSettings>(
  preset: StartablePreset<T>,
  settings: T,
  stop: StopRequest,
  undo: (() => unknown)[],
): Promise<Service> {
  const { signal } = stop;
  const directory = dataDirectory(settings.dataDir);
  makeDataDirectory(directory);
  undo.push(lockDataDirectory(directory));

  const providers = await chooseProviders(settings, { env: process.env, signal });
  signal.throwIfAborted();
  const madeTokens: MadeToken[] = [];
  const isReady = () => !signal.aborted;
  let urls: Listeners["urls"] = {};
  const app = await openApp(() =>
    createApp(
      preset.build({
        settings,
        providers,
        isReady,
        listeners: () => urls,
        onTokenMade: (token, of) => void madeTokens.push({ of, token }),
      }),
    ),
  );
  undo.push(() => closeApp(app));
  const { log } = app.port(ports.telemetry);
  stop.onDefect((error) => log.error("An error that nothing caught: stopping", {}, error));
  signal.throwIfAborted();

  const listeners = await openListeners(app, preset.addresses(settings));
  urls = listeners.urls;
  undo.push(() => drain(app, listeners, settings.shutdownGraceMs, log));
  signal.throwIfAborted();

  writeEndpoints(directory, {
    pid: process.pid,
    listeners: Object.fromEntries(Object.entries(listeners.urls).map(([name, url]) => [name, { url }])),
  });
  undo.push(() => removeOwnEndpoints(directory));
  // A person in front of a terminal is told by `announce`.
  if (!process.stdout.isTTY) logStart(log, preset.name, listeners, providers);
  const console = WEB_CONSOLE in app.contracts && urls["agent"] !== undefined ? `${urls["agent"]}/` : undefined;
  return { preset: preset.name, directory, providers, urls, console, madeTokens };
}

/** Errors of a start are sentences for a person; what lies behind them is only interesting to whoever looks for a defect. */
async function openApp(open: () => Promise<App>): Promise<App> {
  try {
    return await open();
  } catch (cause) {
    const isOutside = cause instanceof ports.RecordsUnavailable || cause instanceof ports.SecretsUnavailable;
    throw new CommandFailed(
      cause instanceof Error ? cause.message : "The app cannot be opened",
      isOutside ? EXIT.unavailable : EXIT.internal,
      cause,
    );
  }
}

function logStart(log: ports.Log, preset: string, { urls }: Listeners, providers: readonly ServedProvider[]): void {
  for (const { id, origin, source } of providers) log.info("Serving a provider", { provider: id, origin, source });
  log.info("Started", { preset, pid: process.pid, ...urls });
}

/**
 * Nothing new comes in, and accepted work finishes while its clients still hear of it: realtime connections last until it is done. What was
 * accepted and has not begun is done after the next start.
 */
async function drain(app: App, listeners: Listeners, graceMs: number, log: ports.Log): Promise<void> {
  log.info("Stopping");
  const working = app.has(ports.engine) ? app.port(ports.engine).drain(graceMs) : Promise.resolve();
  const cut = await listeners.drain(graceMs, working);
  if (cut > 0) log.warn("Some requests did not finish in time and were cut", { requests: cut, graceMs });
}

async function closeApp(app: App): Promise<void> {
  const timer = setTimeout(() => {
    console.error("The stores did not close in time");
    process.exit(EXIT.internal);
  }, CLOSE_MS);
  try {
    await app.close();
  } finally {
    clearTimeout(timer);
  }
}
