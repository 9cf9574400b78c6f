import { execFile } from "node:child_process";

/** Run a program to its end and return its standard output. If it fails, throws an error with all its output. */
export function runProgram(file: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(file, args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${[file, ...args].join(" ")}\n${stdout}${stderr}`, { cause: error }));
      else resolve(stdout);
    });
  });
}
