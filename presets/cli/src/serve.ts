import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WEB_CONSOLE } from "@portico/console";
import { createSignInLinks, SIGN_IN } from "@portico/console/sign-in";
import { type App, createApp, createLive, type Live, ports, type Preset, type Secret } from "@portico/core";
import type { TokenOf } from "@portico/presets/platform/own-token";
import { chooseProviders, isInstance, type ServedProvider } from "@portico/presets/platform/provider-choice";
import { noteStores } from "@portico/presets/platform/stores-file";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { RotatingSettings } from "@portico/presets/settings/rotating-settings";
import { type DataDirectory, dataDirectory, describeFullDisk, settleDirectoryFormat } from "./data-directory.ts";
import { lockDataDirectory, makeDataDirectory } from "./data-lock.ts";
import { readPorts, rememberPorts, removeOwnEndpoints, writeEndpoints } from "./endpoints-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readHttps } from "./certificate.ts";
import { type Listeners, openListeners } from "./listeners.ts";
import { refuseOwnAddress, refuseOwnKeys } from "./refuse-loops.ts";
import type { ProxyProcesses } from "./processes/proxy-processes.ts";
import type { StartablePreset } from "./program.ts";
import type { ReadSettings } from "./read-settings.ts";
import { keepSecretsFresh } from "./keep-secrets-fresh.ts";
import { absoluteLink } from "./running-at.ts";
import { closeApp, drain, followCertificate, limitHeapGrowth, openApp } from "./service-app.ts";
import { type Hangup, listenForHangup, listenForStop, type StopRequest } from "./stop-request.ts";
import { tellLosses } from "./tell-losses.ts";

export interface Service {
  readonly preset: string;
  readonly directory: DataDirectory;
  /** Whether the directory keeps the instance's data. */
  readonly hasData: boolean;
  readonly providers: readonly ServedProvider[];
  /** Surface name to URL. */
  readonly urls: Readonly<Record<string, string>>;
  /** The web console's page, if it is served. */
  readonly console: string | undefined;
  /** Makes a link that opens the console signed in, if the console is served. */
  readonly signInLink: (() => Promise<string>) | undefined;
  /** The self-signed certificate that the listeners use. */
  readonly certificate: string | undefined;
  /** Tokens that this start created, because no setting gives them. They can be shown only now. */
  readonly madeTokens: readonly MadeToken[];
}

interface MadeToken {
  readonly of: TokenOf;
  readonly token: Secret;
}

/**
 * Run a preset until it is asked to stop. Returns the exit code. Calls `read` after the signal handlers are installed, and again when
 * secrets may have changed. Calls `announce` when all listeners are open. Throws CommandFailed if the start fails, after closing everything
 * that was opened.
 */
export async function serve<T extends PlatformSettings>(
  preset: StartablePreset<T>,
  read: () => Promise<Pick<ReadSettings<T>, "settings" | "listing" | "secretFiles" | "configFile">>,
  announce: (service: Service) => void | Promise<void>,
): Promise<number> {
  const stop = listenForStop();
  const undo: (() => unknown)[] = [];
  const hangup = listenForHangup(stop);
  undo.push(() => hangup.close());
  /** The settings of the configuration alone, without what `prepare` adds. */
  const readChecked = async () => {
    const found = await read();
    const problems = preset.problems?.(found.settings) ?? [];
    if (problems.length > 0) throw new CommandFailed(problems.join("\n"), EXIT.config);
    return found;
  };
  try {
    const { settings, listing, secretFiles, configFile } = await readChecked();
    const rotating = createLive<RotatingSettings>(settings);
    const given = { settings: (await preset.prepare?.(settings)) ?? settings, listing, configFile };
    const { app, processes, ...service } = await start(preset, given, rotating, stop, undo);
    const everywhere = processes ? alsoIn(processes, hangup) : hangup;
    const { directory } = service;
    undo.push(keepSecretsFresh({ app, rotating, secretFiles, read: readChecked, directory, hangup: everywhere }).end);
    await announce(service);
    undo.push(limitHeapGrowth());
    return await stop.requested;
  } catch (error) {
    if (stop.signal.aborted && error === stop.signal.reason) return await stop.requested;
    throw error;
  } finally {
    await undoAll(undo);
  }
}

/** The processes of the proxy read their secrets again when the instance does. */
function alsoIn(processes: ProxyProcesses, hangup: Hangup): Hangup {
  return {
    ...hangup,
    onRequest: (told) =>
      hangup.onRequest(() => {
        processes.hangup();
        told();
      }),
  };
}

/** Closes in reverse order. If one close fails, the others still run, because the next start needs the lock. Throws the first failure at the end. */
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
  { settings: given, listing, configFile }: Pick<ReadSettings<T>, "settings" | "listing" | "configFile">,
  rotating: Live<RotatingSettings>,
  stop: StopRequest,
  undo: (() => unknown)[],
): Promise<Service & { readonly app: App; readonly processes: ProxyProcesses | undefined }> {
  const { signal } = stop;
  // Loaded only for several processes.
  const shared =
    given.proxy.processes === 1 ? undefined : (await import("./processes/share-proxy.ts")).shareProxy<T>(preset, given);
  const directory = preset.hasNoData ? openScratchDirectory(undo) : await openDataDirectory(given.dataDir, undo);
  const settings = { ...(shared?.settings ?? given), dataDir: directory.path };

  const providers = await chooseProviders(settings, { env: process.env, signal, rotating });
  signal.throwIfAborted();
  const madeTokens: MadeToken[] = [];
  const isReady = () => {
    if (signal.aborted) return "The service is stopping";
    if (shared && !shared.isOpen) return "The processes of the model proxy are starting";
    return describeFullDisk(directory) ?? true;
  };
  let urls: Listeners["urls"] = {};
  // Also for a preset that extends none of the platform's.
  const noted = (built: Preset): Preset =>
    preset.hasNoData ? built : { name: built.name, extends: built, onOpen: noteStores(directory.path) };
  const app = await openApp(() =>
    createApp(
      noted(
        preset.build({
          settings,
          listing,
          providers,
          isReady,
          rotating,
          listeners: () => urls,
          proxyProcesses: shared?.options,
          onTokenMade: (token, of) => void madeTokens.push({ of, token }),
        }),
      ),
    ),
  );
  undo.push(() => closeApp(app));
  const { log } = app.port(ports.telemetry);
  stop.onDefect((error) => log.error("Uncaught error: stopping", {}, error));
  if (app.has(ports.records)) await tellLosses(app, log);
  await preset.warn?.(settings, log);
  signal.throwIfAborted();
  await refuseOwnKeys(app, settings, providers);

  const addresses = preset.addresses(settings);
  const https = readHttps(settings, directory, Object.values(addresses));
  const earlierPorts = readPorts(directory);
  const listeners = await openListeners(app, {
    ...{ addresses, https, surfaces: preset.serves?.(settings) },
    ...(shared && { shared: { surface: "proxy", as: "first" } }),
    earlierPorts,
    onPortLost: (surface, earlier, port) =>
      log.warn(`The ${surface} listener cannot use the port of earlier starts`, { surface, earlier, port }),
  });
  urls = listeners.urls;
  if (https) undo.push(followCertificate(rotating, listeners));
  undo.push(async () => {
    // Only a requested stop waits: balancers have been told of a process that is ready, and not of a start that failed.
    if (signal.aborted) await sleep(settings.shutdownDelayMs);
    await Promise.all([
      drain(app, listeners, settings.shutdownGraceMs, log),
      shared?.processes?.stop(signal.aborted ? settings.shutdownGraceMs : 0),
    ]);
  });
  rememberPorts(directory, earlierPorts, addresses, urls);
  // A port that the system chose is known only now.
  await refuseOwnAddress(listeners.urls, addresses["proxy"], providers);
  signal.throwIfAborted();
  const hasConsole = WEB_CONSOLE in app.contracts;
  await shared?.open({ urls, hasConsole, configFile, providers, log, stop });

  writeEndpoints(directory, {
    pid: process.pid,
    listeners: Object.fromEntries(Object.entries(listeners.urls).map(([name, url]) => [name, { url }])),
  });
  undo.push(() => removeOwnEndpoints(directory));
  warnOfInstances(log, providers);
  // On a terminal, `announce` prints this.
  if (!process.stdout.isTTY) logStart(log, preset.name, listeners, providers, shared?.count);
  const console = hasConsole && urls["agent"] !== undefined ? `${urls["agent"]}/` : undefined;
  const signInLink = SIGN_IN in app.contracts && urls["agent"] !== undefined ? linksOf(app, settings, urls["agent"]) : undefined;
  const certificate = https?.isSelfSigned ? https.file : undefined;
  return {
    ...{ app, processes: shared?.processes, preset: preset.name, directory, hasData: !preset.hasNoData, providers, urls },
    ...{ console, signInLink, certificate, madeTokens },
  };
}

function linksOf(app: App, { agent }: PlatformSettings, url: string): () => Promise<string> {
  const { records, secrets, clock } = ports;
  const links = createSignInLinks({
    ...{ records: app.port(records), secrets: app.port(secrets), clock: app.port(clock) },
    audit: app.has(ports.audit) ? app.port(ports.audit) : undefined,
  });
  return async () => absoluteLink(agent.publicUrl ?? url, (await links.issue()).url);
}

/** The data directory of this process alone. */
async function openDataDirectory(path: string, undo: (() => unknown)[]): Promise<DataDirectory> {
  const directory = dataDirectory(path);
  makeDataDirectory(directory);
  undo.push(lockDataDirectory(directory));
  // Loaded only after a restore that was killed.
  if (existsSync(directory.restored) || existsSync(directory.restoring))
    (await import("./backup/finish-restore.ts")).finishRestore(directory);
  settleDirectoryFormat(directory);
  return directory;
}

/** For what a process without data needs only while it runs: large uploads on their way, a self-signed certificate. */
function openScratchDirectory(undo: (() => unknown)[]): DataDirectory {
  const path = mkdtempSync(join(tmpdir(), "portico-"));
  undo.push(() => rmSync(path, { recursive: true, force: true }));
  return dataDirectory(path);
}

function logStart(
  log: ports.Log,
  preset: string,
  { urls }: Listeners,
  providers: readonly ServedProvider[],
  processes: number | undefined,
): void {
  for (const { id, origin, source } of providers) log.info("Serving a provider", { provider: id, origin, source });
  log.info("Started", { preset, pid: process.pid, ...urls, processes });
}

/** A chain of instances is allowed. The warning helps to notice an unintended one. */
function warnOfInstances(log: ports.Log, providers: readonly ServedProvider[]): void {
  for (const provider of providers.filter(isInstance))
    log.warn("A provider's key is a safe token: the provider is another Portico instance", { provider: provider.id });
}
