import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A certificate that signs itself, valid for two days: PEM, and the files that hold it. */
export interface OwnCertificate {
  readonly certificate: string;
  readonly key: string;
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Whether this machine has openssl; with `CI` set, its absence is an error. */
export function hasOpenssl(): boolean {
  const isThere = spawnSync("openssl", ["version"]).error === undefined;
  if (!isThere && process.env["CI"]) throw new Error("CI has to have openssl");
  return isThere;
}

/** Make a certificate for `names` (`DNS:example.org`, `IP:127.0.0.1`) in a folder, with openssl. */
export function makeCertificate(folder: string, names: readonly string[]): OwnCertificate {
  const [certificateFile, keyFile] = [join(folder, "certificate.pem"), join(folder, "key.pem")];
  const subject = ["-subj", "/CN=portico-test", "-addext", `subjectAltName=${names.join()}`];
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", ...subject];
  execFileSync("openssl", [...made, "-keyout", keyFile, "-out", certificateFile], { stdio: "ignore" });
  return {
    certificate: readFileSync(certificateFile, "utf8"),
    key: readFileSync(keyFile, "utf8"),
    certificateFile,
    keyFile,
  };
}
