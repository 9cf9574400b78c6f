import { createApp, createLive, ports } from "@portico/core";
import { chooseProviders } from "@portico/presets/platform/provider-choice";
import {
  createPrometheusMetrics,
  createRecentLines,
  proxyProcess,
  type RecentLines,
} from "@portico/presets/platform/proxy-process";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { RotatingSettings } from "@portico/presets/settings/rotating-settings";
import { readHttps } from "../certificate.ts";
import type { ConfigFile } from "../config-file.ts";
import { dataDirectory } from "../data-directory.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { keepSecretsFresh } from "../keep-secrets-fresh.ts";
import { openListeners } from "../listeners.ts";
import type { StartablePreset } from "../program.ts";
import type { ReadSettings } from "../read-settings.ts";
import { closeApp, drain, followCertificate, limitHeapGrowth, openApp } from "../service-app.ts";
import type { FromProcess, ProcessStart, ToProcess } from "./messages.ts";
import { settingsOfProcess } from "./plan-processes.ts";

/** The instance gets new log lines in this interval. */
const LINES_MS = 250;

/** Reads the settings, of the given configuration file if there is one. */
type Read = (
  file: ConfigFile | undefined,
) => Promise<Pick<ReadSettings<PlatformSettings>, "settings" | "listing" | "secretFiles">>;

/**
 * Serves the proxy beside the instance, which started this process, until the instance says so or ends. Ends the process. Signals are for the
 * instance: a terminal and systemd send them to all processes.
 */
export async function serveProxyProcess(preset: StartablePreset, read: Read): Promise<never> {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  const messages = new Messages();
  try {
    const start = await messages.start;
    const running = await open(preset, start, read, messages);
    tell({ kind: "ready" });
    const ending = await messages.ending;
    await running.close(ending);
    process.exit(ending.exitCode);
  } catch (error) {
    const { message } = error as Error;
    const isExpected = error instanceof CommandFailed;
    if (!isExpected) console.error(error);
    const exitCode = isExpected ? error.exitCode : EXIT.internal;
    tell({ kind: "failed", message, exitCode }, () => process.exit(exitCode));
    return new Promise(() => {});
  }
}

/** Why and how a process ends. */
interface ProcessEnding {
  readonly exitCode: number;
  readonly graceMs: number;
  /** Undefined if the instance asked for it. */
  readonly error?: { readonly message: string; readonly cause?: unknown };
}

/** What the instance says, from the first message on. */
class Messages {
  readonly start: Promise<ProcessStart>;
  /** The instance asks for the end, or it has ended, or this process has a defect. */
  readonly ending: Promise<ProcessEnding>;
  onSnapshot: () => void = () => {};
  onHangup: () => void = () => {};

  constructor() {
    const start = Promise.withResolvers<ProcessStart>();
    const ending = Promise.withResolvers<ProcessEnding>();
    process.on("message", (message: ToProcess) => {
      if (message.kind === "start") start.resolve(message.start);
      else if (message.kind === "snapshot") this.onSnapshot();
      else if (message.kind === "hangup") this.onHangup();
      else ending.resolve({ exitCode: EXIT.ok, graceMs: message.graceMs });
    });
    let isEnding = false;
    process.on("disconnect", () => {
      // The next start needs the port: nothing is waited for, as if this was the process that was killed.
      if (isEnding) process.exit(EXIT.unavailable);
      ending.resolve({
        exitCode: EXIT.unavailable,
        graceMs: 0,
        error: { message: "The process of the instance has ended: stopping" },
      });
    });
    process.on("uncaughtException", (cause) => {
      if (isEnding) process.exit(EXIT.internal);
      ending.resolve({ exitCode: EXIT.internal, graceMs: DEFECT_MS, error: { message: "Uncaught error: stopping", cause } });
    });
    void ending.promise.then(() => (isEnding = true));
    this.start = start.promise;
    this.ending = ending.promise;
  }
}

/** After a defect, requests in flight may finish for this time, as at a stop. */
const DEFECT_MS = 10_000;

async function open(
  preset: StartablePreset,
  { number, isReplacement, count, port, urls, hasConsole, configFile, found }: ProcessStart,
  read: Read,
  messages: Messages,
): Promise<{ close(ending: ProcessEnding): Promise<void> }> {
  const { settings: whole, listing, secretFiles } = await read(configFile);
  const settings = settingsOfProcess(whole, number, count);
  const directory = dataDirectory(settings.dataDir);
  const rotating = createLive<RotatingSettings>(settings);
  const providers = await chooseProviders(settings, { env: process.env, rotating, found });
  const isBesideAreas = preset.sharesProxy === "beside areas";
  const measured = isBesideAreas || settings.probes?.listen ? createPrometheusMetrics() : undefined;
  const recentLines = isBesideAreas ? createRecentLines() : undefined;
  const app = await openApp(() =>
    createApp(
      proxyProcess({
        ...{ settings, listing, providers, rotating, listeners: () => urls, proxyProcesses: { own: number } },
        ...{ measured, recentLines, hasConsole, countsRequests: isBesideAreas },
      }),
    ),
  );
  const { log } = app.port(ports.telemetry);
  const hangup = { onRequest: (told: () => void) => void (messages.onHangup = told), close() {} };
  const fresh = keepSecretsFresh({
    app,
    rotating,
    secretFiles,
    read: () => read(undefined),
    directory,
    hangup,
    isCounted: false,
  });
  // Before it serves: the configuration of the start may contain secrets that are no longer valid.
  if (isReplacement) await fresh.readAgain();
  const addresses = preset.addresses(settings);
  const listeners = await openListeners(app, {
    addresses: { proxy: { host: "127.0.0.1", ...addresses["proxy"], port } },
    https: readHttps({ ...settings, https: rotating.current.https }, directory, Object.values(addresses)),
    surfaces: ["proxy"],
    shared: { surface: "proxy", as: "further" },
  });
  const unfollow = followCertificate(rotating, listeners);
  messages.onSnapshot = () => void measured?.snapshot().then((snapshot) => tell({ kind: "snapshot", snapshot }));
  const endLines = recentLines && sendLines(recentLines);
  const endLimit = limitHeapGrowth();
  return {
    async close({ graceMs, error }) {
      if (error) log.error(error.message, {}, error.cause);
      endLimit();
      // At the same time: after the end of the instance, its next start needs the address.
      await Promise.all([drain(app, listeners, graceMs, log), fresh.end()]);
      unfollow();
      await closeApp(app);
      endLines?.();
    },
  };
}

/** Sends the kept lines to the instance. Returns the function that sends the last ones. */
function sendLines(recentLines: RecentLines): () => void {
  let sent = 0;
  const send = () => {
    if (recentLines.newest === sent) return;
    const lines: string[] = [];
    for (let at = Math.max(sent + 1, recentLines.oldest); at <= recentLines.newest; at++) lines.push(recentLines.at(at)!);
    sent = recentLines.newest;
    tell({ kind: "lines", lines });
  };
  const timer = setInterval(send, LINES_MS);
  return () => {
    clearInterval(timer);
    send();
  };
}

function tell(message: FromProcess, then: () => void = () => {}): void {
  if (process.connected) process.send!(message, undefined, undefined, then);
  else then();
}
