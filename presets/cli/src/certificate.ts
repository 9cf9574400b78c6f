import { X509Certificate } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { createSecureContext, getCACertificates, setDefaultCACertificates } from "node:tls";
import type { ListenAddress } from "@portico/presets/settings/listen";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { type DataDirectory, dataDirectory } from "./data-directory.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** A certificate with its chain and its private key, as PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** The parts that listeners need for HTTPS. */
export interface Https {
  /** The file that clients can be configured to trust. */
  readonly file: string;
  /** Whether the instance creates the certificate itself. */
  readonly isSelfSigned: boolean;
  /** Undefined if it must be created first. */
  readonly certificate: Certificate | undefined;
  /** Host names and IP addresses of a created certificate. */
  readonly names: readonly string[];
  /** Store a created certificate for the next start. */
  keep(certificate: Certificate): void;
}

/** A certificate that expires sooner is replaced at the start. */
const RENEWAL_MS = 30 * 24 * 60 * 60_000;
const THIS_MACHINE = ["localhost", "127.0.0.1", "::1"];
const EVERY_ADDRESS = ["0.0.0.0", "::"];

/** The HTTPS settings. Undefined if HTTPS is off. Throws CommandFailed (78) for an unusable certificate. */
export function readHttps(
  { https: { enabled, cert, key } }: Pick<PlatformSettings, "https">,
  directory: DataDirectory,
  addresses: readonly ListenAddress[],
): Https | undefined {
  if (cert === undefined && key === undefined && !enabled) return undefined;
  const names = namesOf(addresses);
  const given = readGivenCertificate({ https: { cert, key } });
  if (!given) return selfSigned(directory, names);
  return { file: given.file, isSelfSigned: false, certificate: given, names, keep() {} };
}

/** The certificate that the settings name, and its file. Undefined if they name none. Throws CommandFailed (78) for an unusable one. */
export function readGivenCertificate({
  https: { cert, key },
}: {
  readonly https: Pick<PlatformSettings["https"], "cert" | "key">;
}): (Certificate & { readonly file: string }) | undefined {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined) throw unusable("https.key requires https.cert");
  if (key === undefined) throw unusable("https.cert requires https.key");
  const certificate = { cert: readPem("https.cert", cert), key: readPem("https.key", key) };
  const fault = faultOf(certificate);
  if (fault !== undefined) throw unusable(`https.cert and https.key cannot be used: ${fault}`);
  return { ...certificate, file: cert };
}

function selfSigned({ certificate: file, certificateKey }: DataDirectory, names: readonly string[]): Https {
  return {
    file,
    isSelfSigned: true,
    certificate: readKept(file, certificateKey, names),
    names,
    keep({ cert, key }) {
      for (const [path, text] of [
        [certificateKey, key],
        [file, cert],
      ] as const) {
        // An existing file would keep its file mode.
        rmSync(path, { force: true });
        writeFileSync(path, text, { mode: 0o600, flag: "wx" });
      }
    },
  };
}

/** The certificate of an earlier start, if it is still valid for these names. */
function readKept(file: string, keyFile: string, names: readonly string[]): Certificate | undefined {
  try {
    const certificate = { cert: readFileSync(file, "utf8"), key: readFileSync(keyFile, "utf8") };
    const read = new X509Certificate(certificate.cert);
    const isNamed = names.every((name) => (isIP(name) ? read.checkIP(name) : read.checkHost(name)) !== undefined);
    const isLasting = Date.parse(read.validTo) > Date.now() + RENEWAL_MS;
    return isNamed && isLasting && faultOf(certificate) === undefined ? certificate : undefined;
  } catch {
    return undefined;
  }
}

/** Loopback names, the bound addresses, and the public addresses of the listeners. */
function namesOf(addresses: readonly ListenAddress[]): readonly string[] {
  const outside = addresses.flatMap(({ publicUrl }) =>
    publicUrl === undefined ? [] : new URL(publicUrl).hostname.replace(/^\[|\]$/g, ""),
  );
  const bound = addresses.map(({ host }) => host).filter((host) => !EVERY_ADDRESS.includes(host));
  return [...new Set([...THIS_MACHINE, ...bound, ...outside])];
}

function readPem(key: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw unusable(`${key}: ${path} cannot be read (${(cause as NodeJS.ErrnoException).code ?? "unknown reason"})`, cause);
  }
}

/** Why Node cannot use a certificate. Undefined if it can. Its messages quote no part of a key. */
function faultOf(certificate: Certificate): string | undefined {
  try {
    createSecureContext(certificate);
    void new X509Certificate(certificate.cert);
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ERR_OSSL_X509_KEY_VALUES_MISMATCH") return "the key does not belong to the certificate";
    return `${code ?? message}`;
  }
}

function unusable(message: string, cause?: unknown): CommandFailed {
  return new CommandFailed(message, EXIT.config, cause);
}

/**
 * Makes this process trust the certificate of the instance's service, in addition to the default ones: a certificate that the
 * instance created itself is not signed by an authority. For commands, which end after a few calls.
 */
export function trustOwnCertificate({ dataDir, https }: Pick<PlatformSettings, "dataDir" | "https">): void {
  try {
    const certificate = readFileSync(https.cert ?? dataDirectory(dataDir).certificate, "utf8");
    setDefaultCACertificates([...getCACertificates("default"), certificate]);
  } catch {
    // Without the file, a call with an untrusted certificate fails: "cannot be reached".
  }
}
