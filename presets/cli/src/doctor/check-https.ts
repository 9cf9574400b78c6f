import { X509Certificate } from "node:crypto";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { DataDirectory } from "../data-directory.ts";
import { CommandFailed } from "../exit-codes.ts";
import { readHttps } from "../https/certificate.ts";
import { addressesOf } from "../preset-table.ts";
import { doubtful, type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "https";
const SOON_MS = 14 * 24 * 60 * 60_000;

/** Checks that the certificate of the listeners is usable, and how long it is valid. No findings if HTTPS is off. */
export function checkHttps(settings: PlatformSettings, directory: DataDirectory): readonly Finding[] {
  try {
    const https = readHttps(settings, directory, Object.values(addressesOf(settings)));
    if (!https) return [];
    if (!https.certificate) return [fine(ABOUT, "the next start creates a self-signed certificate")];
    const { validTo } = new X509Certificate(https.certificate.cert);
    const message = `the certificate in ${https.file} is valid until ${validTo}`;
    const leftMs = Date.parse(validTo) - Date.now();
    if (leftMs > SOON_MS) return [fine(ABOUT, message)];
    return [
      leftMs > 0 ? doubtful(ABOUT, message) : wrong(ABOUT, `the certificate in ${https.file} expired on ${validTo}`, "renew it"),
    ];
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return [wrong(ABOUT, error.message, "correct https.cert and https.key, or omit both to use a self-signed certificate")];
  }
}
