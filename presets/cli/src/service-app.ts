import { setFlagsFromString } from "node:v8";
import { type App, findShortage, findStoreMismatch, findStoreTooNew, isStoreAway, type Live, ports } from "@portico/core";
import type { RotatingSettings } from "@portico/presets/settings/rotating-settings";
import { readGivenCertificate } from "./certificate.ts";
import { NEWER_STORE_HELP } from "./data-directory.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import type { Listeners } from "./listeners.ts";

/** Errors of a start are sentences for a person. Their causes only help to find defects. */
export async function openApp(open: () => Promise<App>): Promise<App> {
  try {
    return await open();
  } catch (cause) {
    const mismatch = findStoreMismatch(cause);
    // What is not migrated says itself what to run.
    const help = findStoreTooNew(cause) ? `. ${NEWER_STORE_HELP}` : "";
    if (mismatch) throw new CommandFailed(`${mismatch.message}${help}`, EXIT.config, cause);
    const isOutside =
      isStoreAway(cause) ||
      cause instanceof ports.SecretsUnavailable ||
      cause instanceof ports.DocumentsUnavailable ||
      cause instanceof ports.BlobsUnavailable;
    const shortage = findShortage(cause);
    const message = cause instanceof Error ? cause.message : "The app cannot be opened";
    throw new CommandFailed(message, isOutside || shortage ? EXIT.unavailable : EXIT.internal, cause);
  }
}

/** Closing the stores normally takes milliseconds. If it hangs, the process ends after this time. */
const CLOSE_MS = 5_000;

/**
 * Refuses new requests and lets accepted work finish. Realtime connections stay open until the work is done, so that clients receive its results. Work
 * that was accepted but has not started runs after the next start.
 */
export async function drain(app: App, listeners: Listeners, graceMs: number, log: ports.Log): Promise<void> {
  log.info("Stopping");
  const working = app.has(ports.engine) ? app.port(ports.engine).drain(graceMs) : Promise.resolve();
  const cut = await listeners.drain(graceMs, working);
  if (cut > 0) log.warn("Some requests did not finish in time and were aborted", { requests: cut, graceMs });
}

export async function closeApp(app: App): Promise<void> {
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

/** A certificate that the instance created is replaced at its next start. */
export function followCertificate(rotating: Live<RotatingSettings>, listeners: Listeners): () => void {
  return rotating.follow((next) => {
    const certificate = readGivenCertificate(next);
    return () => certificate && listeners.replaceCertificate(certificate);
  });
}

/** V8 collects the old generation when it is this much larger than after the last collection. Its own rule allows up to four times the size. */
const PERCENT = 60;

/**
 * Keeps the garbage of a service small. Begin it when the service has started: a heap that still fills up would be collected too often. Returns
 * a function that ends it. It must end before the process does, because V8 refuses code that was compiled and stored under other flags.
 */
export function limitHeapGrowth(): () => void {
  // These runtimes have no such flags.
  if ("Deno" in globalThis || "Bun" in globalThis) return () => {};
  setFlagsFromString(`--heap-growing-percent=${PERCENT}`);
  return () => setFlagsFromString("--heap-growing-percent=0");
}
