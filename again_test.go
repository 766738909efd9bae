package headway_test

import (
	"testing"

	"github.com/headway-go/headway/store"
)

// again are the tests whose promises hold over every store. stores are those
// that they are played over; another module adds its own.
var (
	again = map[string]func(*testing.T){
		"S1":                                  TestS1_WindowIsExact,
		"S2":                                  TestS2_WindowRolls,
		"S3":                                  TestS3_IdleBurst,
		"S5":                                  TestS5_KeysDoNotTouch,
		"S6":                                  TestS6_OrderOfArrival,
		"S6_order":                            TestS6_OrderOfBaseCallsWithinOneInstant,
		"C38":                                 TestC38_ReleasedInOrderOfArrival,
		"S7":                                  TestS7_CancelImprovesThoseBehind,
		"S8":                                  TestS8_CanceledBetweenGrantAndSend,
		"S9":                                  TestS9_ManyWaiting,
		"S10":                                 TestS10_RaisedLimit,
		"S10_Fleet":                           TestS10_Fleet,
		"S11":                                 TestS11_RemovedLimit,
		"S11_more":                            TestS11_OtherReasonsStay,
		"S12":                                 TestS12_KeyError,
		"S13":                                 TestS13_KeysArePrivate,
		"S15":                                 TestS15_LawAndSlot,
		"S18":                                 TestS18_OthersPassARequestThatWaitsForItsOwnRule,
		"S18_more":                            TestS18_EndlessOtherTenants,
		"S19":                                 TestS19_EndlessStreamsOfOneRuleEach,
		"S27":                                 TestS27_ThreeLimitsOnOneService,
		"S28":                                 TestS28_ThreeOutcomes,
		"BlockedForAWhile":                    TestBlockedForAWhile,
		"LimitsOfOthersTeachNothing":          TestLimitsOfOthersTeachNothing,
		"S29":                                 TestS29_CalendarResetsAtLocalMidnight,
		"CalendarInDecemberOfALeapYear":       TestCalendarInDecemberOfALeapYear,
		"SleepCountsAsWaiting":                TestSleepCountsAsWaiting,
		"S30":                                 TestS30_MaxWait,
		"S30_more":                            TestS30_OneWindowOfWhatApplies,
		"S31":                                 TestS31_RefusedUnderLoad,
		"S33":                                 TestS33_OneAgainstAHerd,
		"S34":                                 TestS34_BucketReportsWaits,
		"S35":                                 TestS35_Deadline,
		"S35_more":                            TestS35_DeadlineThroughClient,
		"S36":                                 TestS36_ContextIsOver,
		"S37":                                 TestS37_CostlyIsNotOvertaken,
		"S38":                                 TestS38_C56_ExactlyTheLimit,
		"S40_more":                            TestS40_LineFullAt10000,
		"S39":                                 TestS39_DelayConsumesNothing,
		"S41":                                 TestS41_ServicesAreApart,
		"S80":                                 TestEvents,
		"C60":                                 TestC60_ThreeOutcomesInLine,
		"S40":                                 TestS40_LineFull,
		"S11_in_flight":                       TestVanishedWhileInFlight,
		"S40_makes_way":                       TestFullLineMakesWay,
		"S40_due":                             TestFullLineKeepsWhatIsDue,
		"S40_kinds":                           TestFullLineOfOtherKinds,
		"S50":                                 TestS50_Spend,
		"S50_more":                            TestS50_SpendMovesTheLine,
		"S51":                                 TestS51_WaitInLine,
		"S52":                                 TestS52_SettleFromHeaders,
		"S52_body":                            TestS52_SettleFromTheBody,
		"S52_late":                            TestS52_SettleLate,
		"S52_line":                            TestS52_RefundGoesToTheLine,
		"S53":                                 TestS53_RequestsAndTokens,
		"S60":                                 TestS60_C20_OnePauseForAll,
		"S61":                                 TestS61_TheLongestPauseWins,
		"S62":                                 TestS62_C4_C8_NoHint,
		"S63":                                 TestS63_C3_C6_C24_RefusedWithTheTrueTime,
		"S64":                                 TestS64_C1_C2_DatesAndLongPauses,
		"S66":                                 TestS66_PauseAndWhatIsLeft,
		"S67":                                 TestS67_C7_GitHub,
		"S68":                                 TestS68_AudienceOfAPause,
		"NoneOfNoneSaysNothing":               TestNoneOfNoneIsIgnored,
		"HostileNumbers":                      TestHostileNumbersHoldNoRequestPastItsBound,
		"MaxWaitUnderALimitThatMoves":         TestMaxWaitUnderALimitThatMoves,
		"WhatIsSaidOnceEnds":                  TestAnAnnouncedLimitEnds,
		"RestartWithoutALimit":                TestRestartWithoutALimit,
		"RestartOfThoseWithoutALimit":         TestRestartOfThoseWithoutALimit,
		"WhatIsSaidToOneIdentity":             TestWhatIsAnnouncedToOneIdentityBindsNoOther,
		"Overloaded":                          TestOverloaded,
		"NoUsableTime":                        TestNoUsableTime,
		"RetryAfterAsItIsMeant":               TestRetryAfterAsItIsMeant,
		"RetryAfterAndAReset":                 TestRetryAfterAndAReset,
		"HeadersBeforeTheBody":                TestHeadersBeforeTheBody,
		"NoTimeBeforeTheBody":                 TestNoTimeBeforeTheBody,
		"WhomABodyHolds":                      TestAudienceOfABody,
		"TheBodyAdds":                         TestTheBodyAdds,
		"ABodyThatNeverEnds":                  TestABodyThatNeverEnds,
		"CompressedRefusals":                  TestCompressedRefusals,
		"OneObject":                           TestOneObject,
		"S71_AThrottledProbeWaitsForThePause": TestS71_AThrottledProbeWaitsForThePause,
		"S60_ThePauseComesBeforeTheRoom":      TestS60_ThePauseComesBeforeTheRoom,
		"SlowStartHoldsWhomAPauseSetsApart":   TestSlowStartHoldsThePausedOnesToo,
		"S70_OpenComesBeforeAPause":           TestS70_OpenComesBeforeAPause,
		"S71_A503ThrottlesOrFails":            TestS71_A503ThrottlesOrFails,
		"S71_WhatTheBodyTells":                TestS71_WhatTheBodyAnnounces,
		"AnAnswerIsReadOnce":                  TestAResponseIsReadOnce,
		"MaxPauseOfABreaker":                  TestMaxPauseOfABreaker,
		"S77_APanicInListening":               TestS77_APanicInListening,
		"S70_TheLineIsEmptyTheMomentItOpens":  TestS70_TheLineIsEmptyTheMomentItOpens,
		"S70_TrippedByHand":                   TestS70_TrippedByHand,
		"S70_SharedPolicy":                    TestS70_SharedPolicy,
		"S71_ThrottlingCountsForNothing":      TestS71_ThrottlingCountsForNothing,
		"S72_WhatTheServiceDidNotDo":          TestS72_WhatTheServiceDidNotDo,
		"S73_AProbeGivesItsPlaceBackHoweverItEnds": TestS73_AProbeGivesItsPlaceBackHoweverItEnds,
		"S74_AHangingServerGetsProbesPerLease":     TestS74_AHangingServerGetsProbesPerProbeTimeout,
		"S75_ResultsOfAnOlderStateCountForNothing": TestS75_ResultsOfAnOlderStateCountForNothing,
		"S76_FiveInARowHoweverSlow":                TestS76_FiveInARowHoweverSlow,
		"S78_TheFailureBehindTheRefusal":           TestS78_TheFailureBehindTheRefusal,
		"S15_HalfOpenNeedsAllAtOnce":               TestS15_HalfOpenNeedsAllAtOnce,
		"S15_AProbeToBeHoldsNoPlace":               TestS15_AProbeToBeHoldsNoPlace,
		"BreakerIsOfPolicyAndHost":                 TestBreakerIsOfPolicyAndHost,
		"BreakerFollowsSetPolicies":                TestBreakerFollowsSetPolicies,
		"BreakerTakenAway":                         TestBreakerTakenAway,
		"BreakerChangedUnderAProbeToBe":            TestBreakerChangedUnderAProbeToBe,
		"BreakerOfAForgottenHostIsClean":           TestBreakerOfAForgottenHostIsClean,
		"BreakerHearsOfALateFailure":               TestBreakerReceivesALateFailure,
		"BreakerInATableOfOne":                     TestBreakerInATableOfOne,
		"ARedirectLosesTheKey":                     TestARedirectLosesTheKey,
		"OrHostIsAnIdentityOfItsOwn":               TestOrHostIsAnIdentityOfItsOwn,
		"OrHostUnderASharedPolicy":                 TestOrHostUnderASharedPolicy,
		"SpendsAsLargeAsTheyCome":                  TestSpendsAsLargeAsTheyCome,
		"OneSecondaryLimitIsOneEvent":              TestOneSecondaryLimitIsOneEvent,
		"ObserversDelayNobody":                     TestObserversDelayNoRequest,
		"TraceAnswersWhy":                          TestTraceShowsWhy,
		"TraceKinds":                               TestTraceKinds,
		"TraceEnds":                                TestTraceEnds,
		"TraceAddsUp":                              TestTraceAddsUp,
		"AttemptTimeoutCountsFromTheStart":         TestAttemptTimeoutCountsFromTheStart,
		"AttemptTimeoutSparesTheBody":              TestAttemptTimeoutSparesTheBody,
		"AttemptTimeoutEndsWithTheBody":            TestAttemptTimeoutEndsWithTheBody,
		"AttemptTimeoutLeavesNothing":              TestAttemptTimeoutLeavesNothing,
		"ClassifyOfThePolicy":                      TestClassifyOfThePolicy,
		"ClassifyPanicLeaksNothing":                TestClassifyPanicLeaksNothing,
		"C73_OneCallAMinuteOpens":                  TestC73_OneCallAMinuteOpens,
		"C75_NoForgettingAtAWindowsBorder":         TestC75_NoForgettingAtAWindowsBorder,
		"SlowStartDoubles":                         TestSlowStartDoubles,
		"SlowStartBeginsWithProbes":                TestSlowStartBeginsWithProbes,
		"SlowStartIgnoredMakesRoomForOne":          TestSlowStartIgnoredMakesRoomForOne,
		"SlowStartOpensAgain":                      TestSlowStartOpensAgain,
		"SlowStartDoesNotWedge":                    TestSlowStartDoesNotWedge,
		"SlowStartWithLimitAndSlots":               TestSlowStartWithLimitAndSlots,
		"SlowStartOfOneHostAlone":                  TestSlowStartOfOneHostAlone,
		"Report_refusals":                          TestReportRefusalsTakeNothing,
		"Report_workers":                           TestReportWorkersInTurn,
		"Report_cancels":                           TestReportCancelsLeaveNothing,
		"Report_negative":                          TestReportNoNegativeWait,
		"Report_bypass":                            TestReportBypassIsNoProbe,
		"Report_local":                             TestReportLocalResponseIsHTTP,
		"Report_observer":                          TestReportObserverCallsBack,
		"Report_durations":                         TestReportRetryAfterBeyondDurations,
		"Report_bodies":                            TestReportBodyOfARequestThatIsNotSent,
	}
	stores = map[string]func(testing.TB) store.Store{
		"memory": func(testing.TB) store.Store { return new(store.Memory) },
	}
)

func TestAgainOverAStore(t *testing.T) {
	defer func() { openStore = nil }()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			for name, test := range again {
				opened := 0
				openStore = func(t testing.TB) store.Store {
					opened++
					return open(t)
				}
				t.Run(name, func(t *testing.T) {
					if test(t); opened == 0 {
						t.Error("it has not used the store")
					}
				})
			}
		})
	}
}
