// Loaded before the client's own test file, which knows one address only: every client that it
// makes talks to PAYMENTS_URL. Connections are not kept, as the file waits for their end at its
// own. Nothing else of the client is touched.
'use strict';

const http = require('http');
const url = process.env.PAYMENTS_URL;

http.globalAgent = new http.Agent({ keepAlive: false });
Object.defineProperty(require(process.cwd() + '/node_modules/paylike').Service.prototype, 'url', {
	get: () => url,
	set: () => {},
});
