'use strict';
// New ids: 144 random bits, in letters that need no escape in a path.

const crypto = require('node:crypto');

const mint = (prefix) => prefix + crypto.randomBytes(18).toString('base64url');
const mintSession = () => mint('ses:');
const mintResponse = () => mint('resp_');
const mintConversation = () => `conv_${crypto.randomBytes(18).toString('hex')}`;

module.exports = { mint, mintSession, mintResponse, mintConversation };
