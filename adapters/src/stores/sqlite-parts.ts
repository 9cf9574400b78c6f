/** The insides of the stores in a data directory, for programs that copy them whole. */
export { makeTables as makeJournalTables } from "../engine/embedded/tables.ts";
export { sqliteStoreOf } from "../records/sqlite/store.ts";
export { createSecretFile } from "../secrets/files/secret-file.ts";
