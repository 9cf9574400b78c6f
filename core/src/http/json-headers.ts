/** Of every JSON answer: it is about now and for this caller, and some hold a secret that is shown once. */
export const JSON_HEADERS = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" };
