import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Installs other engines into a folder of the benchmark, so that no installation of Portico contains them. Without a registry, the folder
 * stays empty and the report says which engines are missing.
 */
export function installEngines(...packages: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "portico-bench-engines-"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  try {
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--prefix", folder, ...packages], { stdio: "ignore" });
  } catch {
    console.log("(the packages of other engines could not be installed)");
  }
  return folder;
}
